// What is written goes out with the query it was written for, a moment after the last key, and when it is saved.
const form = () => element.querySelector('.m3-notes');
const held = () => { const box = form(); return {collection: box.dataset.collection, id: box.dataset.id,
  text: box.querySelector('textarea').value, tags: box.querySelector('input').value}; };
let waiting = 0, draft = null;
const send = () => { clearTimeout(waiting); waiting = 0; if (draft) trigger('draft', draft); draft = null; };
element.addEventListener('input', () => { draft = held(); clearTimeout(waiting); waiting = setTimeout(send, 400); });
element.addEventListener('focusout', send);
element.addEventListener('click', e => {
  if (!e.target.closest('[data-do=save]')) return;
  clearTimeout(waiting); draft = null; trigger('save', held()); });
// A field that was written in keeps what it shows whatever the new HTML says.
const fill = () => { send(); for (const field of element.querySelectorAll('[data-was]')) field.value = field.dataset.was; };
watch('value', fill); fill();
