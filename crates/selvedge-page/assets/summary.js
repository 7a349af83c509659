// What is wrong, in words: the accesses of a race, who waits for whom, advice as a diff.

const card = (title, ...content) => h('section', { class: 'card' }, h('h3', {}, title), content);

// The line of a library that the program's line called.
const insideLibrary = (sources, place) => place.library ? [
  h('h4', {}, breakable(`Inside ${place.library.function ?? 'a library'}: ${placeName(place.library)}`)), excerpt(sources, place.library, 3)] : null;

const summaryView = (execution, sources, select, goTo) => {
  const { bug } = execution;
  const cards = [];
  const failing = bug.stacks?.find((stack) => stack.thread === bug.thread);
  const race = bug.name === 'data-race';
  const access = bug.message.match(/^(.+ of \d+ bytes?) and /)?.[1] ?? 'one access';
  cards.push(card([chip(bug.thread), ` ${race ? access : 'here'}: `, breakable(placeName(bug))],
    excerpt(sources, bug, 3) ?? h('p', { class: 'dim' }, bug.function ?? 'no source is known'), insideLibrary(sources, bug),
    failing?.frames.length ? [h('h4', {}, `Calls of ${threadName(bug.thread)}, which ${failing.state}`), stackList(failing.frames)] : null));
  if (bug.other) {
    cards.push(card([chip(bug.other.thread), ` ${bug.other.what}: `, breakable(placeName(bug.other))],
      excerpt(sources, bug.other, 3), insideLibrary(sources, bug.other), bug.other.frames?.length ? [h('h4', {}, 'Calls'), stackList(bug.other.frames)] : null));
  }
  if (race && bug.other) cards.push(unorderedCard(bug));
  if (bug.waiting?.length) cards.push(waitingCard(bug, sources, select, goTo));
  cards.push(storyCard(execution, select, goTo));
  if (bug.advice) cards.push(adviceCard(bug.advice, sources));
  if (bug.blocks?.length) {
    cards.push(card('Memory', h('ul', {}, bug.blocks.map((block) => h('li', {},
      `block #${block.number}: ${plural(block.size, 'byte')}, allocated by ${threadName(block.thread)} at ${placeName(block)}`,
      block.freed ? `, freed by ${threadName(block.freed.thread)} at ${placeName(block.freed)}` : '')))));
  }
  if (bug.explanation) cards.push(card(`About this kind of bug: ${bug.name}`, explanation(bug.explanation)));
  return h('div', { class: 'cards' }, cards);
};

const chip = (thread) => h('span', { class: 'chip', style: threadHue(thread) }, threadName(thread));

// The newest write that a step does not see, or does not write over.
const missed = (step) => (step.passes?.length ? h('span', { class: 'warn' },
  ` ${step.read === null || step.read === undefined ? 'comes before' : 'misses'} step ${step.passes[step.passes.length - 1]}`) : null);

// The steps in words: all of them, or the last ones.
const MOST = 16;
const storyCard = (execution, select, goTo) => {
  const { bug, steps } = execution;
  if (!steps.length) return card('What happens', h('p', { class: 'dim' }, 'No step was taken before it.'));
  const first = steps.length <= MOST ? 0 : Math.max(0, Math.min(steps.length - MOST, (bug.cycle ?? steps.length) - 2));
  const open = (n) => { select(n); goTo('schedule'); };
  const row = (number, thread, classes, ...text) =>
    h('li', { class: classes }, h('span', { class: 'number' }, number), thread === null ? h('span') : chip(thread), h('span', { class: 'words' }, text));
  const rows = steps.slice(first, first + 2 * MOST).map((step, n) => row(
    h('button', { class: 'link', type: 'button', 'aria-label': `open step ${step.step}`, onclick: () => open(first + n) }, String(step.step)), step.thread,
    step.switch === 'preemption' ? 'preempted' : '', h('code', {}, execution.text(first + n)), missed(step), ' ', h('span', { class: 'dim', title: placeName(step) }, breakable(placeName(step).split('/').pop()))));
  if (first > 0) rows.unshift(row('…', null, 'dim', `${plural(first, 'step')} before`));
  const left = steps.length - first - 2 * MOST;
  if (left > 0) rows.push(row('…', null, 'dim', `${plural(left, 'more step')}`));
  if (bug.cycle) rows.push(row('↻', null, 'ends', bug.cycle > steps.length ? 'nothing happens any more' : `the steps from ${bug.cycle} on repeat for ever`));
  else if (bug.waiting?.length) bug.waiting.forEach((wait) => rows.push(row('✗', wait.thread, 'ends', `waits ${wait.what}`)));
  else rows.push(row('✗', bug.thread, 'ends', bug.heading));
  return card('What happens', h('ol', { class: 'story' }, rows),
    h('p', { class: 'dim' }, `${plural(steps.length, 'step')}, ${plural(bug.preemptions, 'preemption')}${bug.preemptions ? ' (dashed line)' : ''}, ${number(bug.context_switches)} context switch${bug.context_switches === 1 ? '' : 'es'}: `,
      h('code', { class: 'schedule-line', title: `S: a switch because the thread before ended or waits, P: a preemption, -: a step${bug.cycle ? ', (…)*: for ever' : ''}` }, bug.schedule.length > 400 ? `${bug.schedule.slice(0, 400)}…` : bug.schedule)),
    h('button', { type: 'button', onclick: () => goTo('schedule') }, 'Step through the schedule'));
};

const unorderedCard = (bug) => card('Why nothing orders them',
  h('p', {}, `No lock, no atomic access, no creation or join of a thread makes what ${threadName(bug.thread)} does at ${placeName(bug)} happen before or after what ${threadName(bug.other.thread)} did at ${placeName(bug.other)}. `,
    'In the schedule, select the last step of one of the threads: steps of the other thread that are not highlighted as past are not ordered with it.'),
  bug.unordered ? h('p', {}, bug.unordered) : null);

const waitingCard = (bug, sources, select, goTo) => card('Who waits for whom', bug.waiting.map((wait) => h('div', { class: 'wait' },
  h('p', {}, chip(wait.thread), ` waits ${wait.what}`,
    wait.on === undefined || !wait.since ? '' : [' – ', chip(wait.on), ' has had it since ',
      stepLink(wait.since, (step) => { select(step); goTo('schedule'); })]),
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

// Orders and fences as the language of the file writes them.
const RUST_ORDERS = { relaxed: 'Relaxed', acquire: 'Acquire', release: 'Release', acq_rel: 'AcqRel', seq_cst: 'SeqCst' };
const inRust = (file) => file?.endsWith('.rs');
const orderName = (order, file) => (inRust(file) ? RUST_ORDERS[order] : `memory_order_${order}`);
const fenceLine = (order, file) => (inRust(file) ? `fence(Ordering::${RUST_ORDERS[order]});` : `atomic_thread_fence(memory_order_${order});`);

// A change of the source as a diff, as far as one line can tell.
const diff = (change, sources) => {
  const to = orderName(change.to, change.file);
  const line = sources[change.file]?.split('\n')[change.line - 1];
  const what = `${change.operation}${change.object ? ` of ${change.object}` : ''}`;
  const calledAt = change.called_at ? `${placeName(change.called_at)}, in ` : '';
  const rows = [h('div', { class: 'hunk' }, breakable(`${calledAt}${placeName(change)}: ${what}`))];
  const add = (sign, text) => rows.push(h('div', { class: sign === '+' ? 'added' : sign === '-' ? 'removed' : '' }, `${sign} ${text}`));
  if (line === undefined) add('+', change.from ? `${to} instead of ${orderName(change.from, change.file)}` : fenceLine(change.to, change.file));
  else if (!change.from) {
    add('+', `${line.match(/^\s*/)[0]}${fenceLine(change.to, change.file)}`);
    add(' ', line);
  } else {
    const from = orderName(change.from, change.file);
    add('-', line);
    add('+', line.split(from).length === 2 ? line.replace(from, to) : `${line}  /* the ${what}: ${to}, not ${from} */`);
  }
  if (change.also_failing) rows.push(h('div', { class: 'hunk' }, 'also for the case that it fails'));
  return h('pre', { class: 'diff', tabindex: 0 }, rows);
};

// Paragraphs and code blocks of our own texts.
const explanation = (text) => (text ?? '').split('```').map((part, n) => {
  if (n % 2) return h('details', {}, h('summary', {}, 'An example'), h('pre', { tabindex: 0 }, part.replace(/^[\w+]*\n/, '')));
  return part.trim().split(/\n\n+/).filter(Boolean).map((paragraph) =>
    h('p', {}, paragraph.split('`').map((piece, k) => (k % 2 ? h('code', {}, piece) : piece.replace(/\s+/g, ' ')))));
});
