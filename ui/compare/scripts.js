//# outcome
element.addEventListener('click', e => { const b = e.target.closest('[data-outcome]'); if (!b) return;
  trigger('outcome', {outcome: b.dataset.outcome, within: b.dataset.within}); });
//# query
element.addEventListener('click', e => { const b = e.target.closest('[data-query]'); if (!b) return;
  trigger('query', {collection: b.dataset.collection, query: b.dataset.query}); });
//# keys
// Enter chooses without a word; the menu has its new value a moment later.
const root = element.closest('.tabitem') || document;
root.addEventListener('keyup', e => { if (e.key !== 'Enter') return;
  const name = e.target.closest('#compare-task,#compare-measure,#compare-by') ? 'chose' : e.target.closest('#compare-a,#compare-b') && 'paired';
  if (name) setTimeout(() => trigger(name), 150); });
