// The page: heading, tabs, keys.

const data = JSON.parse(document.getElementById('data').textContent);
const main = h('main', {});
const sentence = h('p', { class: 'sentence' });
const state = { bug: 0, tab: '', step: -1 };
let views = null;

const openBug = (number) => {
  state.bug = number;
  const bug = data.bugs[number];
  if (!bug) {
    views = { tabs: [['search', 'Search', searchView(data)]] };
  } else {
    const execution = new Execution(bug);
    const schedule = new Schedule(execution, selectStep);
    const graph = new ExecutionGraph(execution, selectStep);
    const details = h('aside', { class: 'details', 'aria-live': 'polite' });
    const go = (label, name, where) => h('button', { type: 'button', title: label, 'aria-label': label, onclick: () => move(where) }, name);
    const bar = h('div', { class: 'bar' }, go('first step', '⇤', 'first'), go('step back', '← back', -1), go('step forward', 'step →', 1), go('last step', '⇥', 'last'),
      h('span', { class: 'legend' }, h('span', { class: 'key rf' }, 'reads from'), h('span', { class: 'key missed' }, 'misses a newer write'), bug.waiting?.length ? h('span', { class: 'key waits' }, 'waits for') : null,
        execution.ends.some((end) => end.kind === 'races') ? h('span', { class: 'key races' }, 'races with') : null, h('span', { class: 'key past' }, 'happens before'), h('span', { class: 'key future' }, 'happens after')));
    const split = h('div', { class: 'split' }, h('div', { class: 'left' }, bar, schedule.element), details);
    views = { execution, schedule, graph, details, tabs: [['summary', 'Summary', summaryView(execution, data.sources, selectStep, openTab)]] };
    if (bug.trace.length) views.tabs.push(['schedule', 'Schedule', split], ['graph', 'Graph', graph.element]);
    if (data.facts.length) views.tabs.push(['search', 'Search', searchView(data)]);
  }
  state.step = -1;
  sentence.textContent = bug?.heading ?? data.sentence;
  render();
  openTab(views.tabs[0][0]);
  if (bug?.trace.length) selectStep(bug.trace.length - 1);
};

const selectStep = (index) => {
  const { execution, schedule, graph, details } = views;
  if (!execution || index < 0 || index >= execution.length) return;
  state.step = index;
  schedule.mark(index);
  graph.mark(index);
  clear(details, stepDetails(execution, data.sources, index, selectStep), variableTable(execution, index, selectStep));
  details.scrollTop = 0;
  remember();
};

// The address names bug, tab and step, so that it can be handed on.
const remember = () => {
  const parts = [state.bug + 1, state.tab, state.step + 1];
  window.history.replaceState(null, '', `#${parts.join('/')}`);
};

const recall = () => {
  const [bug, tab, step] = window.location.hash.slice(1).split('/');
  openBug(data.bugs[Number(bug) - 1] ? Number(bug) - 1 : 0);
  if (views.tabs.some(([name]) => name === tab)) openTab(tab);
  if (step) selectStep(Number(step) - 1);
};

const move = (where) => {
  const { execution } = views;
  if (!execution) return;
  const last = execution.length - 1;
  const to = where === 'first' ? 0 : where === 'last' ? last : Math.min(last, Math.max(0, state.step + where));
  selectStep(to);
};

const sameThread = (direction) => {
  const { execution } = views;
  const thread = execution?.steps[state.step]?.thread;
  for (let n = state.step + direction; execution && n >= 0 && n < execution.length; n += direction) {
    if (execution.steps[n].thread === thread) { selectStep(n); return; }
  }
};

const openTab = (name) => {
  state.tab = name;
  for (const [tab, , view] of views.tabs) {
    view.hidden = tab !== name;
    const button = document.getElementById(`tab-${tab}`);
    button?.setAttribute('aria-selected', tab === name ? 'true' : 'false');
    button?.setAttribute('tabindex', tab === name ? '0' : '-1');
  }
  remember();
  if (name === 'graph') views.graph.draw();
  if (name === 'schedule') { views.schedule.layout(); views.schedule.element.focus({ preventScroll: true }); }
};

const render = () => {
  const tabs = views.tabs.length > 1 ? h('div', { class: 'tabs', role: 'tablist' }, views.tabs.map(([name, label], n) =>
    h('button', { id: `tab-${name}`, role: 'tab', type: 'button', title: `key ${n + 1}`, onclick: () => openTab(name) }, label))) : null;
  const bugs = data.bugs.length > 1 ? h('label', { class: 'bugs' }, `${data.bugs.length} distinct bugs: `,
    h('select', { onchange: (event) => { openBug(Number(event.target.value)); main.querySelector('.bugs select').focus(); } }, data.bugs.map((bug, n) => h('option', { value: n, selected: n === state.bug }, `${n + 1}: ${bug.heading}`)))) : null;
  clear(main, bugs, tabs, views.tabs.map(([name, , view]) => { view.id = `view-${name}`; view.setAttribute('role', views.tabs.length > 1 ? 'tabpanel' : 'region'); return view; }));
};

const theme = () => {
  const { dataset } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
  dataset.theme = dark ? 'light' : 'dark';
};

const keys = {
  ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1), Home: () => move('first'), End: () => move('last'),
  PageDown: () => move(10), PageUp: () => move(-10), n: () => sameThread(1), p: () => sameThread(-1),
  f: () => { const from = views.execution?.source(state.step) ?? -1; if (from >= 0) selectStep(from); },
  t: theme, '+': () => views.graph?.zoom(0.8), '-': () => views.graph?.zoom(1.25), '0': () => views.graph?.fit(), '?': () => help.showModal(),
};
const stepping = new Set(['ArrowDown', 'ArrowUp', 'Home', 'End', 'PageDown', 'PageUp']);

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'SELECT' || help.open) return;
  const tab = views.tabs[Number(event.key) - 1];
  if (tab && views.tabs.length > 1) { openTab(tab[0]); event.preventDefault(); return; }
  const tabs = document.activeElement?.getAttribute('role') === 'tab';
  if (tabs && /^Arrow(Left|Right)$/.test(event.key)) {
    const at = views.tabs.findIndex(([name]) => name === state.tab);
    const [name] = views.tabs[(at + (event.key === 'ArrowRight' ? 1 : views.tabs.length - 1)) % views.tabs.length];
    openTab(name);
    document.getElementById(`tab-${name}`).focus();
    return;
  }
  if (stepping.has(event.key) && state.tab !== 'schedule' && state.tab !== 'graph') return;
  const action = keys[event.key];
  if (action) { action(); event.preventDefault(); }
});

const help = h('dialog', { class: 'help' }, h('h3', {}, 'Keys'), h('dl', { class: 'facts' },
  [['1 2 3 4', 'the tabs'], ['↓ ↑ or j k', 'one step forward, back'], ['PgDn PgUp', 'ten steps'], ['Home End', 'first, last step'], ['n p', 'next, previous step of the same thread'],
    ['f', 'follow the arrow to the write that is read'], ['+ − 0', 'zoom the graph, fit it'], ['t', 'light or dark'], ['? Esc', 'this help, close it']].map(([key, what]) => [h('dt', {}, key), h('dd', {}, what)])),
h('button', { type: 'button', onclick: () => help.close() }, 'Close'));

document.body.append(
  h('header', {},
    h('div', { class: 'top' }, h('span', { class: `verdict ${data.verdict ?? ''}` }, data.verdict ?? 'report'), h('h1', {}, breakable(data.title)),
      h('span', { class: 'space' }),
      h('button', { type: 'button', title: 'keys', 'aria-label': 'keys', onclick: () => help.showModal() }, '?'),
      h('button', { type: 'button', title: 'light or dark', 'aria-label': 'light or dark', onclick: theme }, '◐')),
    sentence,
    h('p', { class: 'command', title: data.command }, h('code', {}, data.command), ' ', h('span', { class: 'dim' }, `selvedge ${data.version}`))),
  main, help);
recall();
window.addEventListener('hashchange', recall);
