// Buttons of the list, and of the tables above it: each sends what it stands for.
element.addEventListener('click', e => {
  const b = e.target.closest('button'); if (!b) return;
  if (b.dataset.i) { for (const other of element.querySelectorAll('[data-i]')) other.toggleAttribute('data-current', other === b);
    trigger('open', {i: Number(b.dataset.i)}); }
  else if (b.dataset.page) trigger('turn', {to: Number(b.dataset.page)});
  else if (b.dataset.do === 'all') trigger('all'); });
// Arrow keys up and down walk the cases.
element.addEventListener('keydown', e => {
  const by = {ArrowDown: 1, ArrowUp: -1}[e.key], all = [...element.querySelectorAll('.m3-opens')];
  const at = all.indexOf(e.target.closest('.m3-opens'));
  if (!by || at < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault(); all[at + by]?.focus(); });
document.addEventListener('m3-case-closed', () => {
  const at = document.documentElement.dataset.m3At;
  const b = element.querySelector(`[data-i="${at}"]`) || element.querySelector('.m3-opens');
  b?.focus(); b?.scrollIntoView({block: 'center'}); });
