//# table
element.addEventListener('click', e => {
  const b = e.target.closest('[data-group],[data-kind],[data-task]'); if (!b) return;
  if ('task' in b.dataset) trigger('task', {name: b.dataset.task});
  else if ('group' in b.dataset) trigger('group', {name: b.dataset.group}); else trigger('kind', {name: b.dataset.kind}); });
//# open
() => { const root = document.documentElement, at = document.querySelector('#failure-sheet .m3-failure');
  root.dataset.m3Case = 'open'; delete root.dataset.m3Look; root.dataset.m3At = at ? at.dataset.at : '';
  document.querySelector('#failure-sheet').scrollIntoView({block: 'start'}); at?.focus({preventScroll: true}); }
//# stepped
() => { const root = document.documentElement, at = document.querySelector('#failure-sheet .m3-failure');
  delete root.dataset.m3Look; if (at) root.dataset.m3At = at.dataset.at; }
//# close
() => { const root = document.documentElement; delete root.dataset.m3Case; delete root.dataset.m3Look;
  document.dispatchEvent(new CustomEvent('m3-case-closed')); }
//# turn
turned => { if (turned) document.dispatchEvent(new CustomEvent('m3-route', {detail: {tab: 'failures'}})); }
//# opened
asked => { const root = document.documentElement, at = document.querySelector('#failure-sheet .m3-failure');
  if (!asked) return;
  delete root.dataset.m3Look;
  if (asked !== 'open' || !at) { delete root.dataset.m3Case; return; }
  root.dataset.m3Case = 'open'; root.dataset.m3At = at.dataset.at;
  document.querySelector('#failure-sheet').scrollIntoView({block: 'start'}); at.focus({preventScroll: true}); }
//# look
() => { document.documentElement.dataset.m3Look = 'open';
  document.querySelector('#failure-unlook button')?.focus({preventScroll: true}); }
//# unlook
const close = () => { if (!document.documentElement.dataset.m3Look) return;
  delete document.documentElement.dataset.m3Look; document.querySelector('#failure-sheet .m3-failure')?.focus({preventScroll: true}); };
element.addEventListener('click', close);
document.addEventListener('keydown', e => { if (e.key === 'Escape' && e.target.closest('#failure-look, #failure-sheet')) close(); });
//# show_list
() => document.querySelector('#failure-which').scrollIntoView({block: 'start'})
//# data
() => { const root = document.documentElement; delete root.dataset.m3Case; delete root.dataset.m3Look;
  document.dispatchEvent(new CustomEvent('m3-data')); }
