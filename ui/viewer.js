const root = element.querySelector('.m3-viewer'), find = query => root.querySelector(query);
const clamp = (x, low, high) => Math.min(high, Math.max(low, x)), short = x => String(+x.toFixed(1));

const inflate = async frame => {
  const bytes = Uint8Array.from(atob(frame.data), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const raw = await new Response(stream).arrayBuffer();
  return frame.bits === 16 ? new Uint16Array(raw) : new Uint8Array(raw); };

// One canvas with its tools. `x`, `y`: the picture's pixel in the middle of the canvas; `scale`: CSS pixels a pixel.
const makePane = (box, step) => {
  const canvas = box.querySelector('canvas'), context = canvas.getContext('2d');
  const sheet = document.createElement('canvas');  // the developed picture, one canvas pixel a pixel
  const words = box.querySelector('.m3-sheet p'), status = box.querySelector('[role=status]');
  const name = box.querySelector('strong'), slider = kind => box.querySelector(`[data-slide=${kind}]`);
  const fingers = new Map();
  let frame = null, values = null, turn = 0, suffix = '', planned = 0, stale = false, busy = false, windowing = false;
  let x = 0, y = 0, scale = 1, fitted = true, centre = 0, width = 1, inverted = false, start = null;

  const aspect = () => frame.spacing ? frame.spacing[0] / frame.spacing[1] : 1;
  const fit = () => Math.min(canvas.clientWidth / frame.width, canvas.clientHeight / (frame.height * aspect()));
  const zoomed = () => frame && scale > fit() * 1.001;
  const plan = () => { if (!planned) planned = requestAnimationFrame(() => { planned = 0; draw(); }); };

  // Stored values become 0…255 through a table, so that a narrow window shows single steps of 16 bits.
  const develop = () => {
    const table = new Uint8ClampedArray(2 ** frame.bits), low = centre - width / 2;
    for (let v = 0; v < table.length; v++) {
      const grey = (v - low) / width * 255; table[v] = inverted ? 255 - grey : grey; }
    const image = new ImageData(frame.width, frame.height), out = image.data, n = frame.channels;
    for (let i = 0, o = 0; o < out.length; i += n, o += 4) {
      out[o] = table[values[i]]; out[o + 1] = table[values[n === 3 ? i + 1 : i]];
      out[o + 2] = table[values[n === 3 ? i + 2 : i]]; out[o + 3] = 255; }
    sheet.width = frame.width; sheet.height = frame.height;
    sheet.getContext('2d').putImageData(image, 0, 0); stale = false; };

  const settle = () => {  // fitted: in the middle; else the middle of the canvas stays on the picture
    if (fitted) { scale = fit(); x = frame.width / 2; y = frame.height / 2; }
    x = clamp(x, 0, frame.width); y = clamp(y, 0, frame.height); };

  const draw = () => {
    const dense = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (!w || !h) return;
    canvas.width = Math.round(w * dense); canvas.height = Math.round(h * dense);
    if (frame) {
      settle(); if (stale) develop();
      const sx = scale * dense, sy = sx * aspect();
      context.imageSmoothingEnabled = scale <= 2; context.imageSmoothingQuality = 'high';
      context.setTransform(sx, 0, 0, sy, w * dense / 2 - x * sx, h * dense / 2 - y * sy);
      context.drawImage(sheet, 0, 0); }
    tell(); };

  const tell = () => {
    for (const tool of box.querySelectorAll('button, input')) tool.disabled = !frame && !busy;
    box.querySelector('[data-do=invert]').setAttribute('aria-pressed', String(inverted));
    canvas.style.cursor = zoomed() ? 'grab' : ''; canvas.style.touchAction = zoomed() ? 'none' : 'pan-y';
    if (!frame) { status.textContent = suffix; return; }
    const parts = [`${frame.width} × ${frame.height}`, `${frame.bits} bit${frame.channels === 3 ? ' colour' : ''}`,
      `zoom ${Math.round(scale * 100)} %`, `window ${short(centre)} / ${short(width)}`];
    if (inverted) parts.push('inverted');
    status.textContent = [...parts, suffix, ...frame.notes].filter(Boolean).join(' · ');
    const bright = slider('brightness'), contrast = slider('contrast');
    bright.min = -start.reach; bright.max = start.reach; bright.value = start.centre - centre;
    bright.setAttribute('aria-valuetext', `window centre ${short(centre)}`);
    contrast.value = width > start.width ? -100 * Math.log(width / start.width) / Math.log(4)
      : start.width > 1 ? 100 - 100 * Math.log(width) / Math.log(start.width) : 0;
    contrast.setAttribute('aria-valuetext', `window width ${short(width)}`); };

  const zoom = (factor, px = canvas.clientWidth / 2, py = canvas.clientHeight / 2) => {
    const low = Math.min(fit(), 1), next = clamp(scale * factor, low, Math.max(32, low));
    const dx = px - canvas.clientWidth / 2, dy = (py - canvas.clientHeight / 2) / aspect();
    x += dx / scale - dx / next; y += dy / scale - dy / next;
    scale = next; fitted = Math.abs(next / fit() - 1) < 1e-3; plan(); };
  const pan = (dx, dy) => { x -= dx / scale; y -= dy / (scale * aspect()); plan(); };
  const setWindow = (c, w) => {
    centre = clamp(c, start.centre - start.reach, start.centre + start.reach); width = clamp(w, 1, 4 * start.width);
    stale = true; plan(); };
  const act = {
    in: () => zoom(1.25), out: () => zoom(0.8),
    invert: () => { inverted = !inverted; stale = true; plan(); },
    reset: () => { fitted = true; inverted = false; setWindow(start.centre, start.width); } };

  box.querySelector('.m3-tools').addEventListener('click', event => {
    const button = event.target.closest('[data-do]'); if (button && frame) act[button.dataset.do](); });
  slider('brightness').addEventListener('input', e => frame && setWindow(start.centre - e.target.value, width));
  slider('contrast').addEventListener('input', e => { if (!frame) return; const s = e.target.value / 100;
    setWindow(centre, s < 0 ? start.width * 4 ** -s : start.width ** (1 - s)); });

  const spot = event => { const edge = canvas.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top]; };
  canvas.addEventListener('wheel', event => { if (!frame) return; event.preventDefault();
    const lines = event.deltaMode === 1 ? 32 : 1;
    zoom(Math.exp(clamp(-event.deltaY * lines * 0.0018, -0.6, 0.6)), ...spot(event)); }, {passive: false});
  canvas.addEventListener('contextmenu', event => event.preventDefault());
  canvas.addEventListener('pointerdown', event => { if (!frame) return;
    canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, spot(event));
    windowing = event.shiftKey || event.button === 2; });
  canvas.addEventListener('pointermove', event => {
    const old = fingers.get(event.pointerId); if (!old || !frame) return;
    const now = spot(event), dx = now[0] - old[0], dy = now[1] - old[1];
    const other = [...fingers].find(([id]) => id !== event.pointerId);
    fingers.set(event.pointerId, now);
    if (other) {
      const far = p => Math.max(8, Math.hypot(p[0] - other[1][0], p[1] - other[1][1]));
      pan(dx / 2, dy / 2); zoom(far(now) / far(old), (now[0] + other[1][0]) / 2, (now[1] + other[1][1]) / 2);
    } else if (windowing) setWindow(centre + dy * width / 300, width * Math.exp(dx / 150));
    else pan(dx, dy); });
  for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, e => fingers.delete(e.pointerId));

  canvas.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const moves = {ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40]};
    const steps = {PageUp: -1, '[': -1, PageDown: 1, ']': 1, ...(zoomed() ? {} : {ArrowLeft: -1, ArrowRight: 1})};
    const deeds = {'+': 'in', '=': 'in', '-': 'out', '0': 'reset', i: 'invert', I: 'invert'};
    if (event.key in steps) step(steps[event.key]);
    else if (frame && event.key in deeds) act[deeds[event.key]]();
    else if (zoomed() && event.key in moves) pan(...moves[event.key]);
    else return;
    event.preventDefault(); });
  new ResizeObserver(plan).observe(canvas);

  const clear = (sentence, loading = false) => {
    turn++; frame = values = null; busy = loading; inverted = false; fingers.clear();
    words.textContent = sentence; plan(); };
  const show = async next => {
    const about = f => JSON.stringify([f.data, f.spacing, f.window, f.notes]);
    if (frame && about(frame) === about(next)) return plan();
    clear('', true); const mine = turn;
    let got; try { got = await inflate(next); } catch (e) { got = null; }
    if (mine !== turn) return;
    if (!got || got.length !== next.width * next.height * next.channels)
      return clear('The picture arrived damaged. Open it again.');
    let low = 0, high = 255;
    if (next.bits === 16) { low = got.reduce((a, b) => Math.min(a, b)); high = got.reduce((a, b) => Math.max(a, b)); }
    const [c, w] = next.window || [127.5, 255];
    frame = next; values = got; start = {centre: c, width: w, reach: Math.ceil(Math.max(high - c, c - low, 1))};
    act.reset(); };
  const label = (title, about, count) => { name.textContent = title; suffix = count;
    canvas.setAttribute('aria-label', about ? `${title}: ${about}` : title);
    box.querySelector('.m3-tools').setAttribute('aria-label', `${title}: tools`); };
  return {box, clear, show, label, redraw: plan}; };

let face = {items: []}, at = 0, waiting = false, timer = 0, overdue = 0, asked = 0, heard = 0;
const describe = () => {
  const item = face.items[at] || {}, n = face.items.length, labels = face.labels || ['Case picture', 'Query picture'];
  for (const part of ['title', 'line', 'caption']) find(`.m3-${part}`).textContent = item[part] || '';
  for (const button of root.querySelectorAll('[data-by]')) { button.hidden = n < 2;
    button.setAttribute('aria-disabled', String(!face.items[at + Number(button.dataset.by)])); }
  main.label(labels[0], item.title, n > 1 ? `${at + 1} of ${n}` : ''); query.label(labels[1], '', ''); };
const step = by => {
  if (!face.items[at + by]) return;
  at += by; waiting = true; describe(); main.clear('Loading the picture', true);
  clearTimeout(timer); clearTimeout(overdue);
  timer = setTimeout(() => {  // back where the value stands: an equal answer would go unnoticed
    if (asked === at && heard === at) return receive();
    asked = at; trigger('step', {at, id: face.items[at].id}); }, 120);
  overdue = setTimeout(() => main.clear('The picture did not arrive. Step to it again.'), 20000); };
const main = makePane(find('.m3-case'), step), query = makePane(find('.m3-query'), step);
const beside = find('.m3-beside');
const arrange = () => { beside.hidden = !face.compare;
  query.box.hidden = beside.hidden || beside.getAttribute('aria-pressed') !== 'true'; };
const receive = () => {
  let next; try { next = JSON.parse(props.value || '{}'); } catch (e) { next = {}; }
  next.items = next.items || [];
  const same = next.items.length === face.items.length && next.items.every((item, i) => item.id === face.items[i].id);
  if (next.step && !same) return;  // an answer that was on its way while another case was opened
  heard = next.at || 0;
  if (waiting && same && next.at !== at) return;  // an answer to an earlier step: a later one is on its way
  clearTimeout(timer); clearTimeout(overdue); waiting = false; face = next; at = asked = heard;
  describe(); arrange();
  if (face.frame) main.show(face.frame); else main.clear(face.problem || props.nothing);
  if (face.compare) query.show(face.compare); else query.clear(''); };
find('.m3-steps').addEventListener('click', event => {
  const button = event.target.closest('[data-by]'); if (button) step(Number(button.dataset.by)); });
beside.addEventListener('click', () => {
  beside.setAttribute('aria-pressed', String(beside.getAttribute('aria-pressed') !== 'true')); arrange(); });
watch('value', receive); receive();
