// One case: arrow keys and buttons step, pictures are copied to all places of a document, curves join its ranks.
const find = query => element.querySelector(query), all = query => [...element.querySelectorAll(query)];
const root = () => find('.m3-failure');
let asked = null, timer = 0, overdue = 0, held = null;

const count = () => Number(root().dataset.of), at = () => asked ?? Number(root().dataset.at);
// The index lives here, so that ten fast presses ask once, for the last.
const go = i => {
  const next = Math.min(count() - 1, Math.max(0, i));
  if (next === at()) return;
  asked = next; tell(); clearTimeout(timer); clearTimeout(overdue);
  timer = setTimeout(() => { timer = 0; trigger('goto', {i: asked}); overdue = setTimeout(forget, 5000); }, 60); };
const forget = () => { asked = null; if (root()) tell(); };
const tell = () => {
  const words = `Case ${(at() + 1).toLocaleString('en')} of ${count().toLocaleString('en')}`, heading = find('h2');
  if (heading.textContent !== words) heading.textContent = words;
  for (const b of all('[data-by]')) b.setAttribute('aria-disabled', String(at() + Number(b.dataset.by) < 0 ||
    at() + Number(b.dataset.by) >= count())); };

// A document is the same in all its places: one picture, one word of the user, one highlight.
const light = doc => { for (const e of all('[data-doc]')) e.toggleAttribute('data-on', doc !== null && e.dataset.doc === doc); };
const copy = () => {
  for (const img of all('img[data-same]')) {
    const src = find(`img[data-first="${img.dataset.same}"]`).src; if (img.src !== src) img.src = src; }
  for (const select of all('.m3-judge')) say(select, select.dataset.anew); };
const say = (select, grade) => { select.value = grade; select.toggleAttribute('data-set', grade !== ''); };

const draw = () => {
  const place = find('.m3-columns'), svg = find('.m3-moves'); if (!svg) return;
  svg.replaceChildren(); if (!place.clientWidth || innerWidth < 900) return;
  const edge = place.getBoundingClientRect(), x0 = place.scrollLeft - edge.left, y0 = place.scrollTop - edge.top;
  svg.setAttribute('width', place.scrollWidth); svg.setAttribute('height', place.scrollHeight);
  const spots = all('.m3-column').map(column => new Map([...column.querySelectorAll('.m3-hit')].map(line =>
    [line.dataset.doc, {box: line.getBoundingClientRect(), good: line.classList.contains('good')}])));
  spots.slice(1).forEach((right, i) => { for (const [doc, to] of right) {
    const from = spots[i].get(doc); if (!from) continue;
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    const [ax, ay, bx, by] = [from.box.right + x0, from.box.top + 18 + y0, to.box.left + x0, to.box.top + 18 + y0];
    const middle = (ax + bx) / 2;
    path.setAttribute('d', `M${ax} ${ay} C${middle} ${ay} ${middle} ${by} ${bx} ${by}`);
    path.dataset.doc = doc; if (to.good) path.classList.add('good');
    svg.append(path); } }); };

const settle = () => {
  const box = root(); if (!box) { forget(); return; }
  if (!timer && asked === Number(box.dataset.at)) { asked = null; clearTimeout(overdue); }
  tell(); light(null); copy(); draw(); seen.disconnect(); seen.observe(find('.m3-columns'));
  if (held && !element.contains(document.activeElement)) (find(held) || box).focus({preventScroll: true}); };
const seen = new ResizeObserver(draw);

element.addEventListener('focusin', e => {
  const by = e.target.dataset.by; held = by ? `[data-by="${by}"]` : '.m3-failure';
  light(e.target.closest('[data-doc]')?.dataset.doc ?? null); });
// Focus that goes to another element has left; one whose element was replaced has not.
element.addEventListener('focusout', e => { if (e.relatedTarget && !element.contains(e.relatedTarget)) { held = null; light(null); } });
element.addEventListener('pointerover', e => light(e.target.closest('[data-doc]')?.dataset.doc ?? null));
element.addEventListener('pointerleave', () => light(null));

element.addEventListener('keydown', e => {
  const by = {ArrowLeft: -1, ArrowRight: 1}[e.key];
  if (!by || !root() || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
  if (e.target.closest('input, textarea, select, canvas, [contenteditable=true]')) return;
  e.preventDefault(); go(at() + by); });
element.addEventListener('click', e => {
  const button = e.target.closest('button');
  if (button?.dataset.by) go(at() + Number(button.dataset.by));
  else if (button?.dataset.do === 'back') { held = null; trigger('back'); }
  else if (button?.dataset.do === 'save') trigger('save');
  else {
    const look = button || e.target.closest('.m3-doc')?.querySelector('.m3-look');
    if (look?.classList.contains('m3-look') && !getSelection().toString())
      trigger('look', {collection: look.dataset.collection, id: look.dataset.id, query: 'query' in look.dataset}); } });
element.addEventListener('change', e => {
  const chosen = e.target.closest('.m3-judge'); if (!chosen) return;
  const {collection, id} = chosen.dataset, grade = chosen.value;
  for (const select of all('.m3-judge')) if (select.dataset.id === id && select.dataset.collection === collection) say(select, grade);
  trigger('judge', {collection, doc: id, grade}); });

watch('value', () => requestAnimationFrame(settle)); settle();
