// What is wrong, in words: the accesses of a race, who waits for whom, advice as a diff.

const card = (title, ...content) => h('section', { class: 'card' }, h('h3', {}, title), content);

// The line of a library that the program's line called.
const insideLibrary = (sources, place) => place.library ? [
  h('h4', {}, `Inside ${place.library.function ?? 'a library'}: ${placeName(place.library)}`), excerpt(sources, place.library, 3)] : null;

const summaryView = (execution, sources, select, goTo) => {
  const { bug } = execution;
  const cards = [];
  const failing = bug.stacks?.find((stack) => stack.thread === bug.thread);
  const race = bug.name === 'data-race';
  cards.push(card([h('span', { class: 'chip', style: threadHue(bug.thread) }, threadName(bug.thread)), ` ${race ? 'one access' : 'here'}: ${placeName(bug)}`],
    excerpt(sources, bug, 3) ?? h('p', { class: 'dim' }, bug.function ?? 'no source is known'), insideLibrary(sources, bug),
    failing?.frames.length ? [h('h4', {}, `Calls of ${threadName(bug.thread)}, which ${failing.state}`), stackList(failing.frames)] : null));
  if (bug.other) {
    cards.push(card([h('span', { class: 'chip', style: threadHue(bug.other.thread) }, threadName(bug.other.thread)), ` ${bug.other.what}: ${placeName(bug.other)}`],
      excerpt(sources, bug.other, 3), insideLibrary(sources, bug.other), bug.other.frames?.length ? [h('h4', {}, 'Calls'), stackList(bug.other.frames)] : null));
  }
  if (race && bug.other) cards.push(unorderedCard(bug));
  if (bug.waiting?.length) cards.push(waitingCard(bug, sources, select, goTo));
  if (bug.blocks?.length) {
    cards.push(card('Memory', h('ul', {}, bug.blocks.map((block) => h('li', {},
      `block #${block.number}: ${plural(block.size, 'byte')}, allocated by ${threadName(block.thread)} at ${placeName(block)}`,
      block.freed ? `, freed by ${threadName(block.freed.thread)} at ${placeName(block.freed)}` : '')))));
  }
  if (bug.advice) cards.push(adviceCard(bug.advice, sources));
  const scheduled = bug.trace.length ? h('p', {}, h('code', { class: 'schedule-line' }, bug.schedule), h('br'),
    h('span', { class: 'dim' }, 'S: a switch because the thread before ended or waits, P: a preemption, -: a step',
      bug.cycle ? ', (…)*: for ever' : '')) : h('p', { class: 'dim' }, 'No step was taken before it.');
  cards.push(card('Schedule', h('p', {}, `${plural(bug.trace.length, 'step')}, ${plural(bug.preemptions, 'preemption')}, ${number(bug.context_switches)} context switch${bug.context_switches === 1 ? '' : 'es'}`),
    scheduled, bug.trace.length ? h('button', { type: 'button', onclick: () => goTo('schedule') }, 'Step through the schedule') : null));
  if (bug.explanation) cards.push(card(`About this kind of bug: ${bug.name}`, explanation(bug.explanation)));
  return h('div', { class: 'cards' }, cards);
};

const unorderedCard = (bug) => card('Why nothing orders them',
  h('p', {}, `No lock, no atomic access, no creation or join of a thread makes what ${threadName(bug.thread)} does at ${placeName(bug)} happen before or after what ${threadName(bug.other.thread)} did at ${placeName(bug.other)}. `,
    'In the schedule, select the last step of one of the threads: steps of the other thread that are not highlighted as past are not ordered with it.'),
  bug.unordered ? h('p', {}, bug.unordered) : null);

const waitingCard = (bug, sources, select, goTo) => card('Who waits for whom', bug.waiting.map((wait) => h('div', { class: 'wait' },
  h('p', {}, h('span', { class: 'chip', style: threadHue(wait.thread) }, threadName(wait.thread)), ` waits ${wait.what}`,
    wait.on === undefined ? '' : [' – ', h('span', { class: 'chip', style: threadHue(wait.on) }, threadName(wait.on)), wait.since ? ' has had it since ' : ' could help',
      wait.since ? stepLink(wait.since, (step) => { select(step); goTo('schedule'); }) : '']),
  excerpt(sources, wait, 1))));

const OUTCOMES = {
  removes: 'These changes remove the bug: every execution of the changed program was explored.',
  'removes-this-one': 'These changes remove this bug; others remain.',
  unconfirmed: 'These changes forbid this execution; whether others fail was not checked to the end.',
  remains: 'These changes forbid this execution; others still fail.',
  sequential: 'No memory order or fence removes this bug: it is there under sequential consistency as well.',
  unknown: 'No order or fence was found that would forbid this execution.',
};

const adviceCard = (advice, sources) => card('Advice', h('p', {}, OUTCOMES[advice.outcome] ?? '',
  advice.executions ? ` (${plural(advice.executions, 'execution')})` : ''),
advice.changes?.map((change) => diff(change, sources)));

// A change of the source as a diff, as far as one line can tell.
const diff = (change, sources) => {
  const line = sources[change.file]?.split('\n')[change.line - 1];
  const what = `${change.operation}${change.object ? ` of ${change.object}` : ''}`;
  const calledAt = change.called_at ? `${placeName(change.called_at)}, in ` : '';
  const rows = [h('div', { class: 'hunk' }, `${calledAt}${placeName(change)}: ${what}`)];
  const add = (sign, text) => rows.push(h('div', { class: sign === '+' ? 'added' : sign === '-' ? 'removed' : '' }, `${sign} ${text}`));
  if (line === undefined) add('+', change.from ? `memory_order_${change.to} instead of memory_order_${change.from}` : `atomic_thread_fence(memory_order_${change.to});`);
  else if (!change.from) {
    add('+', `${line.match(/^\s*/)[0]}atomic_thread_fence(memory_order_${change.to});`);
    add(' ', line);
  } else {
    const from = `memory_order_${change.from}`;
    add('-', line);
    add('+', line.split(from).length === 2 ? line.replace(from, `memory_order_${change.to}`) : `${line}  /* the ${what}: memory_order_${change.to}, not ${change.from} */`);
  }
  if (change.also_failing) rows.push(h('div', { class: 'hunk' }, 'also for the case that it fails'));
  return h('pre', { class: 'diff', tabindex: 0 }, rows);
};

// Paragraphs and code blocks of our own texts.
const explanation = (text) => (text ?? '').split('```').map((part, n) => {
  if (n % 2) return h('pre', { tabindex: 0 }, part.replace(/^\w*\n/, ''));
  return part.trim().split(/\n\n+/).filter(Boolean).map((paragraph) =>
    h('p', {}, paragraph.split('`').map((piece, k) => (k % 2 ? h('code', {}, piece) : piece.replace(/\s+/g, ' ')))));
});
