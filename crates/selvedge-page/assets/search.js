// The search: what was explored under which assumptions, over time, and where executions come from.

const searchView = (data) => {
  const parts = [];
  if (data.facts.length) {
    parts.push(wideCard('What was explored', h('dl', { class: 'facts explored' }, data.facts.map(([name, value]) => [h('dt', {}, name),
      h('dd', {}, /^\d+$/.test(value) ? number(Number(value)) : value)]))));
  }
  if (data.notes.length) parts.push(card('Notes', h('ul', {}, data.notes.map((note) => h('li', {}, note)))));
  if (data.runs.length) parts.push(...comparison(data.runs));
  if (data.history.length > 2 && data.history[data.history.length - 1].seconds >= 0.5) parts.push(historyCard(data.history));
  if (data.origins.length) parts.push(...originCards(data.origins, data.sources));
  if (data.unreached) parts.push(unreachedCard(data.unreached, data.sources, data.verdict));
  for (const [heading, text] of data.texts) parts.push(card(heading, h('pre', { tabindex: 0 }, text)));
  return h('div', { class: 'cards' }, parts);
};

const historyCard = (history) => {
  const states = history.some((sample) => sample.states);
  const lines = states ? [['states', (sample) => sample.states ?? 0]] : [['executions', (sample) => sample.executions], ['blocked', (sample) => sample.blocked]];
  // Letters are not to shrink with the page.
  const [width, height, left, bottom] = [window.innerWidth < 600 ? 340 : 640, 220, 64, 26];
  const end = history[history.length - 1].seconds || 1;
  const most = Math.max(1, ...lines.flatMap(([, value]) => history.map(value)));
  const x = (seconds) => left + (seconds / end) * (width - left - 12);
  const y = (value) => height - bottom - (value / most) * (height - bottom - 16);
  const grid = [0, 0.5, 1].map((part) => [s('line', { x1: left, x2: width - 12, y1: y(part * most), y2: y(part * most), class: 'grid' }),
    s('text', { x: left - 6, y: y(part * most) + 4, class: 'axis end' }, number(part * most))]);
  const times = [0, 0.5, 1].map((part) => s('text', { x: x(part * end), y: height - 8, class: part === 1 ? 'axis end' : 'axis middle' }, `${(part * end).toFixed(end < 10 ? 1 : 0)} s`));
  const curves = lines.map(([name, value], n) => s('polyline', { class: `curve c${n}`, points: history.map((sample) => `${x(sample.seconds).toFixed(1)},${y(value(sample)).toFixed(1)}`).join(' ') }, s('title', {}, name)));
  const memory = Math.max(...history.map((sample) => sample.memory));
  return card('Over time', s('svg', { class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'executions over time' }, grid, times, curves),
    h('p', { class: 'dim' }, lines.map(([name], n) => [h('span', { class: `swatch c${n}` }), `${name}  `]), memory ? `– at most ${(memory / 1048576).toFixed(0)} MiB of memory` : ''));
};

const wideCard = (...content) => {
  const element = card(...content);
  element.classList.add('across');
  return element;
};

const originCards = (origins, sources) => {
  const total = origins.reduce((sum, origin) => sum + origin.executions, 0);
  const lines = new Map();
  for (const origin of origins) {
    const name = placeName(origin.place);
    const line = lines.get(name) ?? { place: origin.place, executions: 0 };
    line.executions += origin.executions;
    lines.set(name, line);
  }
  const ranked = [...lines.values()].sort((a, b) => b.executions - a.executions).slice(0, 20);
  const code = (place) => sources[place.file]?.split('\n')[place.line - 1]?.trim() ?? '';
  const share = (count) => h('td', { class: 'share' }, h('span', { class: 'bar-cell', style: `--share:${(100 * count / total).toFixed(1)}%` }), `${number(count)} (${(100 * count / total).toFixed(count === total ? 0 : 1)}%)`);
  return [
    wideCard('Where executions come from',
      h('p', { class: 'dim' }, 'Each execution but the first is an alternative to one explored before: a read reads from another write, or a write comes at another place among the writes to its location. These are the lines at which alternatives begin. To have fewer executions, reduce how often these lines run, or what other threads write to what they read.'),
      table(['line', 'code', 'executions'], ranked.map((line) => h('tr', {}, h('td', {}, breakable(placeName(line.place))), h('td', {}, h('code', {}, code(line.place))), share(line.executions))), 'origins')),
    wideCard('Pairs of lines that conflict',
      table(['this line', 'reads from or follows', 'executions'], origins.slice(0, 20).map((origin) => h('tr', {},
        h('td', {}, breakable(placeName(origin.place)), h('br'), h('code', {}, code(origin.place))),
        h('td', {}, origin.other ? [breakable(placeName(origin.other)), h('br'), h('code', {}, code(origin.other))] : 'the initial value'), share(origin.executions))), 'pairs')),
  ];
};

// Lines that follow each other in one function are one row.
const unreachedCard = (places, sources, verdict) => {
  const so = verdict === 'incomplete' ? ' so far' : '';
  if (!places.length) return wideCard('Lines that no execution reached', h('p', { class: 'dim' }, `Every line of the program was reached${so}.`));
  const code = (place) => sources[place.file]?.split('\n')[place.line - 1]?.trim() ?? '';
  const asserts = places.filter((place) => /\b(assert|ASSERT|EXPECT|CHECK|__VERIFIER_assert)\w*\s*\(/.test(code(place)));
  const rows = [];
  for (const place of places) {
    const last = rows[rows.length - 1];
    if (last && last.place.file === place.file && last.place.function === place.function && place.line <= last.end + 2) {
      last.end = place.line;
      last.code.push(code(place));
    } else rows.push({ place, end: place.line, code: [code(place)] });
  }
  const name = (row) => row.end === row.place.line ? placeName(row.place) : `${placeName(row.place)}–${row.end}`;
  return wideCard('Lines that no execution reached',
    h('p', { class: 'dim' }, `What is written there has not been checked${so}: nothing in these lines can fail because nothing runs them.`),
    asserts.length ? h('p', { class: 'unevaluated' }, asserts.length === 1 ? 'One assertion was never evaluated: ' : `${asserts.length} assertions were never evaluated: `,
      asserts.map((place, n) => [n ? ', ' : '', placeName(place)])) : '',
    table(['lines', 'function', 'code'], rows.map((row) => h('tr', {}, h('td', {}, breakable(name(row))), h('td', {}, breakable(row.place.function ?? '')),
      h('td', {}, row.code.slice(0, 8).map((text, n) => [n ? h('br') : '', h('code', {}, text)])))), 'unreached'));
};

const comparison = (runs) => {
  const chart = (title, value, show) => {
    const most = Math.max(...runs.map(value), 1e-9);
    return card(title, h('div', { class: 'bars' }, runs.map((run) => [h('span', {}, run.name),
      h('span', { class: 'track' }, h('span', { class: 'fill', style: `width:${Math.max(0.5, 100 * value(run) / most).toFixed(1)}%` })),
      h('span', { class: 'value' }, show(value(run)))])));
  };
  return [
    card('Algorithms', table(['algorithm', 'executions', 'blocked', 'seconds', 'MiB', 'verdict'], runs.map((run) => h('tr', {},
      h('td', {}, run.name), h('td', {}, number(run.executions)), h('td', {}, number(run.blocked)), h('td', {}, run.seconds.toFixed(2)),
      h('td', {}, (run.memory / 1048576).toFixed(1)), h('td', {}, run.verdict))), 'runs')),
    chart('Executions', (run) => run.executions, number),
    chart('Time', (run) => run.seconds, (value) => `${value.toFixed(2)} s`),
    chart('Memory', (run) => run.memory, (value) => `${(value / 1048576).toFixed(1)} MiB`),
  ];
};
