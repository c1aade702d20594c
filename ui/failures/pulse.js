// Tells the server that the tab is in view, when it is opened and when the data set changes meanwhile.
const root = document.documentElement;
const tell = () => requestAnimationFrame(() => { if (root.dataset.m3Tab === 'failures') trigger('shown'); });
document.addEventListener('m3-data', () => { delete root.dataset.m3Case; delete root.dataset.m3Look; });
for (const name of ['m3-route', 'm3-nav', 'm3-data']) document.addEventListener(name, tell);
trigger('shown');
