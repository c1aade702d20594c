// One button a card opens its case. Arrow keys walk the cards: left and right in order, up and down by rows.
const buttons = () => [...element.querySelectorAll('.m3-open')];
const root = document.documentElement;
const open = button => {
  for (const b of buttons()) b.toggleAttribute('data-current', b === button);
  root.dataset.m3Panel = 'open';
  trigger('open', {collection: button.dataset.collection, id: button.dataset.id}); };
element.addEventListener('click', e => { const b = e.target.closest('.m3-open'); if (b) open(b); });
element.addEventListener('keydown', e => {
  const all = buttons(), at = all.indexOf(e.target.closest('.m3-open'));
  if (at < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
  const here = all[at].getBoundingClientRect();
  const near = list => list.reduce((a, b) => !a || Math.abs(b.getBoundingClientRect().left - here.left) <
    Math.abs(a.getBoundingClientRect().left - here.left) ? b : a, null);
  const row = (list, edge) => list.filter(b => Math.abs(b.getBoundingClientRect().top - edge) < 8);
  const tops = all.map(b => b.getBoundingClientRect().top);
  const below = Math.min(...tops.filter(t => t > here.top + 8)), above = Math.max(...tops.filter(t => t < here.top - 8));
  const target = {ArrowRight: () => all[at + 1], ArrowLeft: () => all[at - 1], Home: () => all[0], End: () => all.at(-1),
    ArrowDown: () => near(row(all, below)), ArrowUp: () => near(row(all, above))}[e.key];
  if (!target) return;
  e.preventDefault(); target()?.focus(); });
// The panel asks for the hit before or after the open one.
document.addEventListener('m3-step', e => {
  const all = buttons(), next = all[all.findIndex(b => b.hasAttribute('data-current')) + e.detail];
  if (next) { open(next); next.scrollIntoView({block: 'nearest'}); } });
document.addEventListener('m3-closed', () => {
  (element.querySelector('.m3-open[data-current]') || buttons()[0])?.focus(); });
