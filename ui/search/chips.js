const line = element.querySelector('.m3-line'), base = element.id, SEARCHED = 12, MOST = 200;
let facets = [], chosen = {}, parts = {}, heads = null, timer = 0;
const make = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text; return e; };
const button = (cls, text) => { const b = make('button', cls, text); b.type = 'button'; return b; };
const fold = text => text.normalize('NFKC').toLowerCase();
const open = name => { for (const [other, p] of Object.entries(parts)) {
  const on = other === name; p.pop.hidden = !on; p.head.setAttribute('aria-expanded', on);
  if (on) { p.pop.style.left = '0px'; const r = p.pop.getBoundingClientRect(), most = document.documentElement.clientWidth - 8;
    if (r.right > most) p.pop.style.left = Math.max(most - r.right, 8 - r.left) + 'px'; } } };
const current = () => Object.keys(parts).find(name => !parts[name].pop.hidden);

// What is shown follows `chosen`; nothing that may have the focus is made anew.
const show = () => {
  for (const [name] of facets) { const p = parts[name], values = chosen[name], names = values.join(', ');
    p.now.textContent = !values.length ? 'all' : names.length <= 12 ? names : String(values.length);
    p.head.classList.toggle('on', values.length > 0);
    p.clear.disabled = !values.length;
    for (const box of p.list.querySelectorAll('input')) box.checked = values.includes(box.value); }
  const wanted = facets.flatMap(([name]) => chosen[name].map(value => ({name, value})));
  const there = [...line.querySelectorAll('.m3-chosen')];
  for (const chip of there) if (!wanted.some(w => w.name === chip.dataset.facet && w.value === chip.dataset.value)) chip.remove();
  for (const {name, value} of wanted) {
    let chip = there.find(c => c.dataset.facet === name && c.dataset.value === value);
    if (!chip) { chip = button('m3-chosen'); chip.dataset.facet = name; chip.dataset.value = value;
      const cross = make('span', 'm3-cross', '×'); cross.setAttribute('aria-hidden', 'true');
      chip.append(make('span', 'm3-unseen', 'Remove ' + props.labels[name] + ' '), make('bdi', '', value), cross);
      chip.title = value; }
    line.append(chip); } };
const choose = (name, values) => {
  chosen = {...chosen, [name]: values};
  props.value = JSON.stringify({facets, chosen});  // as an input of a search it is never behind
  show(); clearTimeout(timer); timer = setTimeout(() => trigger('filter', chosen), 150); };

const fill = (name, values) => {
  const p = parts[name], words = p.find ? fold(p.find.value).split(/\s+/).filter(Boolean) : [];
  const fit = values.filter(([v]) => words.every(w => fold(v).includes(w)));
  p.list.replaceChildren(...fit.slice(0, MOST).map(([v, n]) => { const row = make('label', 'm3-tick');
    const box = make('input'); box.type = 'checkbox'; box.value = v; box.checked = chosen[name].includes(v);
    row.append(box, make('bdi', '', v), make('span', 'm3-count', '(' + n.toLocaleString('en') + ')')); return row; }));
  p.note.textContent = !fit.length ? 'Nothing has this name.' : fit.length > MOST ?
    'The first ' + MOST + ' of ' + fit.length.toLocaleString('en') + '. Type to find others.' : ''; };
const facet = (name, values) => {
  const label = props.labels[name], box = make('div', 'm3-facet-box'), head = button('m3-facet-head');
  const p = parts[name] = {head, now: make('bdi'), pop: make('div', 'm3-pop'), list: make('div', 'm3-ticks'),
    note: make('p', 'm3-few'), clear: button('m3-plain', 'Clear')};
  const arrow = make('span', 'm3-arrow', '▾'); arrow.setAttribute('aria-hidden', 'true');
  head.append(make('span', '', label + ': '), p.now, arrow);
  p.pop.id = base + '-' + name; p.pop.hidden = true;
  p.pop.setAttribute('role', 'group'); p.pop.setAttribute('aria-label', label);
  head.setAttribute('aria-expanded', 'false'); head.setAttribute('aria-controls', p.pop.id);
  if (values.length > SEARCHED) { const row = make('label', 'm3-find'); p.find = make('input'); p.find.type = 'text';
    p.find.autocomplete = 'off'; p.find.addEventListener('input', () => fill(name, values));
    row.append(make('span', '', 'Find'), p.find); p.pop.append(row); }
  p.note.setAttribute('role', 'status');
  p.pop.append(p.list, p.note, p.clear); box.append(head, p.pop); heads.append(box); fill(name, values);
  head.addEventListener('click', () => open(p.pop.hidden ? name : null));
  p.clear.addEventListener('click', () => { head.focus(); choose(name, []); });
  p.list.addEventListener('change', e => { const v = e.target.value, rest = chosen[name].filter(x => x !== v);
    choose(name, e.target.checked ? [...rest, v] : rest); });
  p.pop.addEventListener('keydown', e => {
    const step = {ArrowDown: 1, ArrowUp: -1}[e.key]; if (!step) return;
    e.preventDefault(); const all = [...p.list.querySelectorAll('input')], at = all.indexOf(document.activeElement);
    (all[at + step] || (at < 0 ? all[0] : p.find || all[at]))?.focus(); });
  box.addEventListener('focusout', e => {
    if (e.relatedTarget && !box.contains(e.relatedTarget) && !p.pop.hidden) open(null); }); };
const paint = () => {
  let v = {}; try { v = JSON.parse(props.value || '{}'); } catch (e) { v = {}; }
  clearTimeout(timer); facets = v.facets || []; parts = {};
  chosen = Object.fromEntries(facets.map(([name]) => [name, (v.chosen || {})[name] || []]));
  heads = make('div', 'm3-heads'); line.replaceChildren(heads);
  for (const [name, values] of facets) facet(name, values); show();
  element.querySelector('.m3-chips').classList.toggle('m3-none', !facets.length); };

line.addEventListener('click', e => { const chip = e.target.closest('.m3-chosen'); if (!chip) return;
  const {facet: name, value} = chip.dataset, next = chip.nextElementSibling || chip.previousElementSibling;
  const target = next && next.matches('.m3-chosen') ? next : parts[name].head;
  choose(name, chosen[name].filter(v => v !== value)); target.focus(); });
element.addEventListener('keydown', e => { const name = current();
  if (e.key === 'Escape' && name) { e.stopPropagation(); open(null); parts[name].head.focus(); } });
document.addEventListener('pointerdown', e => {
  const name = current(); if (name && !parts[name].head.parentNode.contains(e.target)) open(null); }, true);
addEventListener('resize', () => { const name = current(); if (name) open(name); });
watch('value', paint); paint();
