const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const tabOf = keys => props.tabs.includes(keys.tab) ? keys.tab : props.tabs[0];
const kept = {};  // the keys of every tab when it was last shown
let now = read();
const settle = () => { kept[tabOf(now)] = now; document.documentElement.dataset.m3Tab = tabOf(now); };
const tell = () => { now = read(); settle();
  document.dispatchEvent(new CustomEvent('m3-nav', {detail: now})); trigger('nav', now); };
document.addEventListener('m3-route', event => {
  const turned = event.detail.tab && event.detail.tab !== tabOf(now);
  if (!turned && Object.entries(event.detail).every(([key, value]) => key === 'tab' || (now[key] ?? null) === value)) return;
  const next = {...(turned ? kept[event.detail.tab] : now), ...event.detail};
  for (const key of Object.keys(next)) if (next[key] === null || next[key] === '') delete next[key];
  if (tabOf(next) === props.tabs[0]) delete next.tab;
  now = next; settle();
  const hash = new URLSearchParams(next).toString();
  history.pushState({}, '', hash ? '#' + hash : location.pathname + location.search);
  if (parent !== window) parent.postMessage({hash, queryString: ''}, 'https://huggingface.co'); });
document.addEventListener('click', event => { const tab = event.target.closest('[role=tab][data-tab-id]')?.dataset.tabId;
  if (props.tabs.includes(tab) && tab !== tabOf(now)) document.dispatchEvent(new CustomEvent('m3-route', {detail: {tab}})); });
addEventListener('popstate', tell);
if (tabOf(now) === props.tabs[0] && Object.keys(now).length < 1) settle(); else tell();
