const well = element.querySelector('.m3-well'), frame = element.querySelector('.m3-frame');
const input = element.querySelector('input'), note = element.querySelector('.m3-note');
const clear = element.querySelector('.m3-clear'), hint = frame.innerHTML, most = props.most;
const value = () => { try { return JSON.parse(props.value || '{}'); } catch (e) { return {}; } };
const paint = () => {
  const v = value();
  if (v.src) { const img = document.createElement('img'); img.src = v.src; img.alt = v.alt || 'Your picture';
    frame.replaceChildren(img); } else { frame.innerHTML = hint; }
  clear.hidden = !v.src; note.textContent = v.note || ''; };
const take = file => {
  if (!file) return;
  if (file.size > most) { note.textContent = 'This file has ' + (file.size / 1048576).toFixed(1) +
    ' MiB; at most ' + (most / 1048576) + ' MiB are read.'; return; }
  note.textContent = 'Reading the picture';
  const reader = new FileReader();
  reader.onload = () => {
    props.value = JSON.stringify({...value(), note: note.textContent});  // so that an equal answer is news too
    trigger('picture', {b64: reader.result.split(',')[1] || ''}); };
  reader.onerror = () => { note.textContent = 'The browser could not read this file.'; };
  reader.readAsDataURL(file); };
input.addEventListener('change', () => { take(input.files[0]); input.value = ''; });
clear.addEventListener('click', () => trigger('removed', {}));
for (const kind of ['dragenter', 'dragover']) element.addEventListener(kind, e => {
  e.preventDefault(); well.classList.add('over'); });
element.addEventListener('dragleave', () => well.classList.remove('over'));
element.addEventListener('drop', e => {
  e.preventDefault(); well.classList.remove('over'); take(e.dataTransfer.files[0]); });
document.addEventListener('paste', e => {
  if (!element.offsetParent) return;
  const file = [...(e.clipboardData ? e.clipboardData.files : [])].find(f => f.type.startsWith('image/'));
  if (file) { e.preventDefault(); take(file); } });
watch('value', paint); paint();
