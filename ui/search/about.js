element.addEventListener('click', e => { if (!e.target.closest('.m3-own')) return;
  document.documentElement.dataset.m3Panel = 'open'; trigger('own', {}); });
