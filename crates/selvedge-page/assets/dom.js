// Building blocks. Text from the data goes into text nodes and attributes only, never into markup.

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const clear = (element, ...children) => {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

const number = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
const threadName = (thread) => `T${thread}`;
const threadHue = (thread) => `--hue: ${(205 + thread * 137.5) % 360}`;
const plural = (count, what) => `${number(count)} ${what}${count === 1 ? '' : 's'}`;

const placeName = (place) => {
  if (place.file && place.line) return `${place.file}:${place.line}`;
  return place.file ?? place.function ?? '?';
};

// A path or a name of C++ that may be broken after its parts.
const breakable = (text) => text.split(/(?<=[/,_]|::)/).flatMap((part, n) => (n ? [h('wbr'), part] : [part]));

// A button that looks like a link, for going to a step.
const stepLink = (step, select) =>
  h('button', { class: 'link', type: 'button', onclick: () => select(step - 1) }, `step ${step}`);

// Some lines of a source file around `line`.
const excerpt = (sources, place, around) => {
  const text = place.file ? sources[place.file] : undefined;
  if (text === undefined || !place.line) return null;
  const lines = text.split('\n');
  const end = lines[lines.length - 1] === '' ? lines.length - 1 : lines.length;
  const first = Math.max(1, place.line - around);
  const last = Math.min(Math.max(end, place.line), place.line + around);
  const rows = [];
  for (let n = first; n <= last; n += 1) {
    const here = n === place.line;
    rows.push(h('div', { class: here ? 'line here' : 'line' },
      h('span', { class: 'number' }, String(n)), h('code', {}, lines[n - 1] || ' ')));
  }
  return h('div', { class: 'source', tabindex: 0, role: 'group', 'aria-label': `source at ${placeName(place)}` }, rows);
};

// Whether a call is the program's own, and not one of the language or of a library.
const isOwn = (frame) => frame.file && !/^\/usr\/|\/include\/c\+\+\/|^\/rustc\//.test(frame.file);

const stackList = (frames) =>
  h('ol', { class: 'stack' }, frames.map((frame) =>
    h('li', {}, h(isOwn(frame) ? 'b' : 'span', { class: isOwn(frame) ? '' : 'dim' }, breakable(frame.function ?? '?')), ' ',
      h('span', { class: 'dim' }, frame.file ? breakable(placeName(frame)) : ''))));

// The headings stand in front of the cells where the columns do not fit beside each other.
const table = (headings, rows, classes) => {
  rows.forEach((row) => [...row.children].forEach((cell, n) => { cell.dataset.label = headings[n]; }));
  return h('div', { class: 'scroller' }, h('table', { class: classes ?? '' },
    h('thead', {}, h('tr', {}, headings.map((heading) => h('th', {}, heading)))),
    h('tbody', {}, rows)));
};
