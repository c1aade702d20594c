// Save what arrives, then let go of it, so that the same file asked for again is news.
const problem = element.querySelector('.m3-problem');
const save = () => {
  let v; try { v = JSON.parse(props.value || 'null'); } catch (e) { v = null; }
  if (!v) return;
  problem.textContent = v.problem || '';
  if (v.problem) return;
  const bytes = Uint8Array.from(atob(v.base64), c => c.charCodeAt(0)), link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes], {type: v.type})); link.download = v.name;
  document.body.append(link); link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  props.value = ''; };
watch('value', save);
