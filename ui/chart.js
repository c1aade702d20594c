// Draws the figure in `props.value`. Print keeps the figure's own colours and title; the page has its own.
const box = element.querySelector('.m3-chart'), plot = element.querySelector('.m3-plot');
const nothing = element.querySelector('.m3-nothing'), [title, below] = element.querySelector('figcaption').children;
const buttons = [...element.querySelectorAll('[data-save]')];
const NARROW = 560, config = {displayModeBar: false, displaylogo: false};
const words = html => new DOMParser().parseFromString(html || '', 'text/html').body.textContent;
const merge = (a, b) => { const out = {...a};
  for (const [key, value] of Object.entries(b || {}))
    out[key] = value && typeof value === 'object' && !Array.isArray(value) ? merge(out[key], value) : value;
  return out; };
const load = () => window.m3Plotly ??= new Promise((done, failed) => {
  const script = document.createElement('script');
  script.src = props.source; script.onload = () => done(window.Plotly);
  script.onerror = () => { window.m3Plotly = null; script.remove(); failed(new Error('not loaded')); };
  document.head.append(script); });

let seen = false, planned = 0, drawn = '';
const say = sentence => { nothing.textContent = sentence; nothing.hidden = !sentence; };

// The figure in the page's colours, its title in the caption, and its narrow form where there is little width.
const onScreen = (text, width) => {
  const style = getComputedStyle(plot);
  const own = (quoted, print) => JSON.stringify(style.getPropertyValue(props.inks[print]).trim() || print);
  const figure = JSON.parse(text.replace(new RegExp(`"(${Object.keys(props.inks).join('|')})"`, 'g'), own));
  const narrow = width < NARROW ? figure.layout.meta?.narrow : null;
  const bare = {title: {text: '', subtitle: {text: ''}}, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', width,
    margin: {t: props.plain}, height: figure.layout.height - props.titled + props.plain};
  const layout = merge(merge(figure.layout, bare), narrow?.layout);
  const data = figure.data.map((trace, i) => merge(trace, narrow?.traces[i]));
  return {data, layout}; };

const draw = async () => {
  const text = props.value || '', empty = !text;
  for (const button of buttons) button.disabled = empty || !window.Plotly;
  plot.hidden = empty;
  if (empty) { title.textContent = below.textContent = ''; drawn = ''; say(props.nothing); return; }
  const own = JSON.parse(text).layout.title || {};
  title.textContent = words(own.text); below.textContent = words(own.subtitle?.text);
  plot.setAttribute('aria-label', [props.named, title.textContent, below.textContent].filter(Boolean).join(': '));
  if (!seen || !plot.clientWidth) { say(''); return; }
  let Plotly;
  if (!window.Plotly) say('Loading the chart');
  try { Plotly = await load(); } catch (e) { say('The code of the charts did not load. Reload the page.'); return; }
  if (text !== props.value) return;
  say('');
  const next = onScreen(text, plot.clientWidth), key = JSON.stringify(next);
  for (const button of buttons) button.disabled = false;
  if (key === drawn) return;
  drawn = key; plot.style.minHeight = next.layout.height + 'px';
  await Plotly.newPlot(plot, next.data, next.layout, config);  // drawn anew: margins and ticks of another figure would stay
  plot.removeAllListeners('plotly_click');
  plot.on('plotly_click', e => { const name = e.points[0]?.customdata;
    if (name !== undefined && name !== null) trigger('point', {customdata: String(name)}); }); };
const plan = () => { if (!planned) planned = requestAnimationFrame(() => { planned = 0; draw(); }); };

// A saved picture says below what made its figures: `layout.meta.source`, parts with " · " between them.
const WIDE = 1000, LINE = 16;
const footing = figure => { const lines = [''];
  for (const part of (figure.layout.meta?.source || '').split(' · ').filter(Boolean)) {
    const last = lines.at(-1), both = last ? last + ' · ' + part : part;
    if (both.length <= 150 || !last) lines[lines.length - 1] = both; else lines.push(part); }
  return lines[0] ? lines : []; };
const asSvg = (uri, lines, height) => {
  const read = new DOMParser().parseFromString(decodeURIComponent(uri.slice(uri.indexOf(',') + 1)), 'image/svg+xml');
  const svg = read.documentElement, tall = height + (lines.length ? LINE * lines.length + 8 : 0);
  const add = (name, values, text = '') => { const node = read.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
    node.textContent = text; svg.append(node); };
  svg.setAttribute('height', tall); svg.setAttribute('viewBox', `0 0 ${WIDE} ${tall}`);
  add('rect', {x: 0, y: height, width: WIDE, height: tall - height, fill: '#ffffff'});
  lines.forEach((text, i) => add('text', {x: 10, y: height + LINE * (i + 1) - 4, 'font-family': 'system-ui, sans-serif', 'font-size': 11, fill: '#475569'}, text));
  return 'data:image/svg+xml,' + encodeURIComponent(new XMLSerializer().serializeToString(svg)); };
const asPng = (uri, height) => new Promise((done, failed) => { const image = new Image();
  image.onerror = failed;
  image.onload = () => { const sheet = document.createElement('canvas'); sheet.width = 2 * WIDE; sheet.height = 2 * height;
    sheet.getContext('2d').drawImage(image, 0, 0, sheet.width, sheet.height); done(sheet.toDataURL('image/png')); };
  image.src = uri; });

element.querySelector('.m3-save').addEventListener('click', async event => {
  const button = event.target.closest('[data-save]'); if (!button || !props.value || !window.Plotly) return;
  const figure = JSON.parse(props.value), format = button.dataset.save, height = figure.layout.height, lines = footing(figure);
  const drawn = await Plotly.toImage({data: figure.data, layout: figure.layout, config}, {format: 'svg', width: WIDE, height});
  const svg = asSvg(drawn, lines, height), link = document.createElement('a');
  link.href = format === 'svg' ? svg : await asPng(svg, height + (lines.length ? LINE * lines.length + 8 : 0));
  link.download = props.file + '.' + format;
  document.body.append(link); link.click(); link.remove(); });

new IntersectionObserver(([entry]) => { if (entry.isIntersecting && !seen) { seen = true; plan(); } }).observe(box);
new ResizeObserver(plan).observe(box);
new MutationObserver(plan).observe(document.body, {attributes: true, attributeFilter: ['class']});
watch('value', plan); draw();
