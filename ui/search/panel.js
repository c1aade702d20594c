// Close, previous and next hit happen here; "like" and "use" go to the server.
const root = document.documentElement, panel = element.closest('#panel') || element;
const close = () => { if (!root.dataset.m3Panel) return;
  delete root.dataset.m3Panel; document.dispatchEvent(new CustomEvent('m3-closed')); };
element.addEventListener('click', e => {
  const b = e.target.closest('button'); if (!b) return;
  if ('close' in b.dataset) close();
  else if (b.dataset.hit) root.dataset.m3Step = b.dataset.hit, document.dispatchEvent(new CustomEvent('m3-step', {detail: +b.dataset.hit}));
  else if (b.dataset.act === 'like') { close(); trigger('like', {collection: b.dataset.collection, id: b.dataset.id}); }
  else if (b.dataset.act === 'use') { close(); trigger('use', {collection: b.dataset.collection, id: b.dataset.id}); } });
document.addEventListener('keydown', e => {
  if (e.key === 'Escape' && root.dataset.m3Panel && e.target.closest('#panel, #hits')) close(); });
