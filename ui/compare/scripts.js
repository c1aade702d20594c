//# outcome
element.addEventListener('click', e => { const b = e.target.closest('[data-outcome]'); if (!b) return;
  trigger('outcome', {outcome: b.dataset.outcome, within: b.dataset.within}); });
//# query
element.addEventListener('click', e => { const b = e.target.closest('[data-query]'); if (!b) return;
  trigger('query', {collection: b.dataset.collection, query: b.dataset.query}); });
