const input = element.querySelector('input'), pop = element.querySelector('.m3-pop'), list = element.querySelector('.m3-found');
const total = element.querySelector('.m3-total'), moreButton = element.querySelector('.m3-more');
const field = element.querySelector('.m3-field'), random = element.querySelector('.m3-random');
let seen = {of: 0, total: 0, words: '', rows: []}, asked = null, typed = '', active = -1, timer = 0;
const make = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text; return e; };
const number = n => n.toLocaleString('en'), queries = n => number(n) + (n === 1 ? ' query' : ' queries');
input.id = element.id + '-input'; list.id = element.id + '-list'; input.maxLength = props.longest;
input.setAttribute('aria-controls', list.id); element.querySelector('label').htmlFor = input.id;

const pieces = (cls, parts) => { const e = make('bdi', cls);
  e.append(...parts.map(([text, marked]) => marked ? make('mark', '', text) : document.createTextNode(text))); return e; };
const option = (row, at) => {
  const e = make('li', 'm3-option'), about = make('span', 'm3-about');
  e.id = list.id + '-' + at; e.dataset.at = at;
  e.setAttribute('role', 'option'); e.setAttribute('aria-selected', 'false');
  for (const part of [...row.about.map(p => pieces('', p)), ...row.facts.map(f => make('span', '', f))]) {
    if (about.childNodes.length) about.append(' · '); about.append(part); }
  e.append(row.text.length ? pieces('m3-text', row.text) : make('span', 'm3-text m3-without', 'no words'), about); return e; };
const activate = at => {
  list.children[active]?.setAttribute('aria-selected', 'false'); active = at;
  const e = list.children[at]; if (!e) { active = -1; input.removeAttribute('aria-activedescendant'); return; }
  e.setAttribute('aria-selected', 'true'); input.setAttribute('aria-activedescendant', e.id);
  const top = e.offsetTop;
  list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + e.offsetHeight - list.clientHeight)); };
const canGrow = () => seen.rows.length < Math.min(seen.total, props.most);
const say = () => {
  total.textContent = asked && asked.start === 0 ? 'Searching' : seen.words ? number(seen.total) + ' of ' +
    queries(seen.of) + (seen.total ? '' : '. Try fewer or other words.') : queries(seen.of);
  if (!asked && seen.total > props.most && !canGrow()) total.textContent += '. The first ' + props.most + ' are listed.';
  moreButton.hidden = !canGrow();
  moreButton.textContent = 'Show more (' + number(seen.rows.length) + ' of ' + number(seen.total) + ' shown)'; };
const draw = from => {
  if (!from) { list.replaceChildren(); activate(-1); list.scrollTop = 0; }
  list.append(...seen.rows.slice(from).map((row, i) => option(row, from + i))); say(); };

const look = (words, start) => { asked = {words, start}; say(); trigger('look', {words, start}); };
const grow = () => { if (!asked && !timer && canGrow()) look(seen.words, seen.rows.length); };
const settle = () => { clearTimeout(timer); timer = 0;
  if (typed !== (asked ? asked.words : seen.words)) look(typed, 0); };
const place = () => { const r = field.getBoundingClientRect(), most = document.documentElement.clientWidth - 8;
  const width = Math.min(640, most - 8); pop.style.width = Math.max(width, 0) + 'px';
  pop.style.left = Math.min(0, most - r.left - width) + 'px'; };
const open = () => { if (!pop.hidden) return; pop.hidden = false; input.setAttribute('aria-expanded', 'true'); place(); };
const close = () => { pop.hidden = true; input.setAttribute('aria-expanded', 'false'); activate(-1); };
const plain = parts => parts.map(([text]) => text).join('');
const choose = at => { const row = seen.rows[at]; if (!row) return;
  clearTimeout(timer); timer = 0; asked = null; typed = seen.words;
  input.value = plain(row.text) || row.id; input.focus(); input.setSelectionRange(0, 0); close();
  props.value = JSON.stringify({kind: 'chosen'});  // so that a later face is news even where it equals the last one
  trigger('choose', {collection: row.collection, id: row.id}); };

const paint = () => {
  let v = {}; try { v = JSON.parse(props.value || '{}'); } catch (e) { v = {}; }
  if (v.kind === 'face') { clearTimeout(timer); timer = 0; asked = null; typed = ''; seen = v; input.value = v.chosen;
    input.placeholder = 'Search ' + queries(v.of); random.disabled = !v.of; close(); draw(0); return; }
  if (v.kind !== 'answer' || !asked || v.words !== asked.words || v.start !== asked.start) return;
  asked = null;
  if (v.start === 0) { seen = v; draw(0); return; }
  const from = seen.rows.length; seen = {...v, rows: [...seen.rows, ...v.rows]}; draw(from); };

input.addEventListener('input', () => { typed = [...input.value].slice(0, props.longest).join(''); open(); clearTimeout(timer); timer = setTimeout(settle, 200); });
input.addEventListener('click', () => { if (input.value !== typed) input.select(); open(); });
input.addEventListener('keydown', e => {
  if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return;
  const last = seen.rows.length - 1;
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { e.preventDefault();
    if (pop.hidden) open();
    else if (e.key === 'ArrowUp') activate(active < 0 ? last : Math.max(active - 1, 0));
    else { activate(Math.min(active + 1, last)); if (active === last) grow(); } }
  else if (e.key === 'Enter') { e.preventDefault();
    if (pop.hidden) open(); else if (timer) settle(); else if (active >= 0) choose(active); else if (!asked) activate(0); }
  else if (e.key === 'Escape') { if (!pop.hidden) close(); else { input.value = typed = ''; settle(); } } });
element.addEventListener('keydown', e => {
  if (e.key === 'Escape' && !pop.hidden && e.target !== input) { close(); input.focus(); } });
list.addEventListener('pointerdown', e => { if (e.pointerType === 'mouse' && e.target.closest('li')) e.preventDefault(); });
list.addEventListener('click', e => { const row = e.target.closest('li'); if (row) choose(+row.dataset.at); });
list.addEventListener('scroll', () => {
  if (list.scrollTop && list.scrollTop + list.clientHeight > list.scrollHeight - 80) grow(); });
moreButton.addEventListener('click', () => { grow(); input.focus(); });
random.addEventListener('click', () => { close(); trigger('random', {}); });
field.addEventListener('focusout', e => { if (e.relatedTarget && !pop.contains(e.relatedTarget) && e.relatedTarget !== input) close(); });
document.addEventListener('pointerdown', e => { if (!pop.hidden && !pop.contains(e.target) && e.target !== input) close(); }, true);
addEventListener('resize', () => { if (!pop.hidden) place(); });
watch('value', paint); paint();
