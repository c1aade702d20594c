const input = element.querySelector('input'), line = element.querySelector('.m3-line');
input.addEventListener('change', () => {
  const file = input.files[0]; input.value = ''; if (!file) return;
  if (file.size > props.most) { line.textContent = 'This file has ' + (file.size / 1048576).toFixed(1) +
    ' MiB; at most ' + (props.most / 1048576) + ' MiB are read.'; return; }
  line.textContent = 'Reading the file';
  const reader = new FileReader();
  reader.onload = () => trigger('file', {name: file.name, b64: reader.result.split(',')[1] || ''});
  reader.onerror = () => { line.textContent = 'The browser could not read this file.'; };
  reader.readAsDataURL(file); });
const paint = () => { line.innerHTML = props.value || ''; };
watch('value', paint); paint();
