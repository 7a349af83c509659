// The schedule: threads as columns, steps from top to bottom. Only visible rows are in the document.

const ROW = 30;
const GUTTER = 58;

class Schedule {
  constructor(execution, select) {
    this.execution = execution;
    this.select = select;
    this.selected = -1;
    this.makeRows();
    this.header = h('div', { class: 'columns' });
    this.layer = h('div', { class: 'layer' });
    this.arrows = s('svg', { class: 'arrows', 'aria-hidden': 'true' });
    this.content = h('div', { class: 'content' }, this.arrows, this.layer);
    this.element = h('div', {
      class: 'schedule', tabindex: 0, role: 'listbox', 'aria-label': 'schedule, one step a row',
      onscroll: () => this.later(),
    }, this.header, this.content);
    new ResizeObserver(() => this.layout()).observe(this.element);
  }

  makeRows() {
    const { bug, steps } = this.execution;
    this.rows = [];
    this.rowOf = [];
    steps.forEach((step, n) => {
      if (bug.cycle === step.step) this.rows.push({ remark: 'from here on for ever ↻' });
      this.rowOf[n] = this.rows.length;
      this.rows.push({ index: n });
    });
    if (bug.cycle !== undefined && bug.cycle !== null) {
      const ended = bug.cycle > steps.length;
      this.rows.push({ remark: ended ? 'the program has ended; nothing changes any more' : `everything is as it was before step ${bug.cycle} ↻` });
      return;
    }
    this.firstEnd = this.rows.length;
    this.execution.ends.forEach((end) => this.rows.push({ end }));
  }

  // How wide a column is that shows every text whole, within limits.
  wanted(room) {
    if (this.execution.threads.length > 12) return 136;
    this.longest ??= Math.max(...this.rows.map((row) => (row.index === undefined ? 0 : this.execution.text(row.index).length)));
    return room > 500 ? Math.min(this.longest * 8 + 28, 260) : Math.min(this.longest * 7.3 + 22, 150);
  }

  layout() {
    const { threads } = this.execution;
    const room = this.element.clientWidth - GUTTER;
    if (room <= 0) return;
    const share = Math.floor(room / threads.length);
    this.width = share >= 160 ? Math.min(460, share) : Math.max(room > 500 ? 120 : 96, share, this.wanted(room));
    const total = GUTTER + this.width * threads.length;
    this.content.style.height = `${this.rows.length * ROW + 8}px`;
    this.content.style.width = this.header.style.width = `${total}px`;
    clear(this.header, h('span', { class: 'corner' }, 'step'), threads.map((thread, n) =>
      h('span', { class: 'thread', style: `left:${GUTTER + n * this.width}px;width:${this.width}px;${threadHue(thread)}` },
        thread === 0 ? 'T0 main' : threadName(thread))));
    this.draw();
    this.show();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  left(thread) { return GUTTER + this.execution.column.get(thread) * this.width; }

  draw() {
    if (!this.width) return;
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - 8);
    const last = Math.min(this.rows.length - 1, Math.ceil((top + this.element.clientHeight) / ROW) + 8);
    const rows = [];
    for (let n = first; n <= last; n += 1) rows.push(this.row(n));
    clear(this.layer, rows);
    this.drawArrows(first, last);
  }

  row(n) {
    const row = this.rows[n];
    const top = `top:${n * ROW}px`;
    if (row.remark) return h('div', { class: 'row remark', style: top }, h('span', { class: 'gutter' }, ''), h('em', {}, row.remark));
    if (row.end) {
      // Nothing else is in this row, so that a long text may reach into other columns.
      const { thread, text } = row.end;
      const total = GUTTER + this.width * this.execution.threads.length;
      const width = Math.max(this.width - 8, Math.min(text.length * 7.6 + 16, total - GUTTER - 8));
      const left = Math.min(this.left(thread) + 4, total - width - 4);
      const named = left < this.left(thread) ? `${threadName(thread)}: ${text}` : text;
      return h('div', { class: 'row end', style: top }, h('span', { class: 'gutter' }, '✗'),
        h('span', { class: 'cell failed', style: `left:${left}px;width:${width}px`, title: named }, named));
    }
    const { execution } = this;
    const step = execution.steps[row.index];
    const switched = step.switch === 'preemption' ? ' preempted' : step.switch === 'free' ? ' switched' : '';
    const cycle = execution.bug.cycle && step.step >= execution.bug.cycle ? ' cycle' : '';
    const here = row.index === this.selected;
    let relation = '';
    if (this.selected >= 0 && !here) {
      if (execution.before(row.index, this.selected)) relation = ' past';
      else if (execution.before(this.selected, row.index)) relation = ' future';
      else relation = ' concurrent';
    }
    const mark = step.switch === 'preemption' ? 'P' : step.switch === 'free' ? 'S' : '';
    const stale = step.passes?.length ? ' stale' : '';
    return h('div', {
      class: `row step${switched}${cycle}${relation}${here ? ' selected' : ''}`, style: top,
      id: `step-${step.step}`, role: 'option', 'aria-selected': here ? 'true' : 'false', 'data-step': step.step,
      onclick: () => this.select(row.index),
    }, h('span', { class: 'gutter' }, h('b', { title: mark === 'P' ? 'preemption' : mark === 'S' ? 'context switch' : null }, mark), String(step.step)),
    h('span', {
      class: `cell${stale}`, title: `${execution.text(row.index)} – ${placeName(step)}`,
      style: `left:${this.left(step.thread) + 4}px;width:${this.width - 8}px;${threadHue(step.thread)}`,
    }, execution.text(row.index)));
  }

  drawArrows(first, last) {
    const height = (last - first + 1) * ROW;
    const offset = first * ROW;
    this.arrows.style.top = `${offset}px`;
    this.arrows.setAttribute('width', String(GUTTER + this.width * this.execution.threads.length));
    this.arrows.setAttribute('height', String(height));
    const paths = [];
    const { steps } = this.execution;
    // An arrow to the thread `to` in `row`, from the step `from` or from the thread `thread` in the row `above`.
    const add = (from, to, kind, row, above = this.rowOf[from], thread = steps[from]?.thread) => {
      if (thread === undefined) return;
      const y1 = above * ROW + ROW / 2 - offset;
      const y2 = row * ROW + ROW / 2 - offset;
      const a = this.left(thread);
      const b = this.left(to);
      const chosen = from >= 0 && (from === this.selected || this.rows[row].index === this.selected);
      const w = this.width;
      let path;
      if (a === b) path = `M${a + 6} ${y1} C${a - 14} ${y1} ${a - 14} ${y2} ${a + 4} ${y2}`;
      else if (a < b) path = `M${a + w - 6} ${y1} C${a + w + 24} ${y1} ${b - 24} ${y2} ${b + 2} ${y2}`;
      else path = `M${a + 6} ${y1} C${a - 24} ${y1} ${b + w + 24} ${y2} ${b + w - 2} ${y2}`;
      paths.push(s('path', { d: path, class: `arrow ${kind}${chosen ? ' chosen' : ''}` }));
    };
    for (let n = first; n <= last; n += 1) {
      const row = this.rows[n];
      if (row.end) {
        const { from, other, kind, thread } = row.end;
        if (other >= 0) add(-1, thread, kind, n, this.firstEnd + other, this.execution.ends[other].thread);
        else add(from, thread, kind, n);
      }
      if (row.index === undefined) continue;
      const step = steps[row.index];
      const source = this.execution.source(row.index);
      const shown = source >= 0 && (steps[source].thread !== step.thread || row.index === this.selected || source === this.selected);
      if (shown) add(source, step.thread, 'rf', n);
      if (step.passes?.length) add(step.passes[step.passes.length - 1] - 1, step.thread, 'missed', n);
    }
    clear(this.arrows, paths);
  }

  // Marks a step as selected and scrolls to it.
  mark(index) {
    this.selected = index;
    this.element.setAttribute('aria-activedescendant', `step-${index + 1}`);
    this.show();
    this.draw();
  }

  show() {
    if (this.selected < 0 || !this.width) return;
    const { element } = this;
    const top = this.rowOf[this.selected] * ROW;
    const view = element.clientHeight - 40;
    if (top < element.scrollTop + ROW) element.scrollTop = top - ROW * 2;
    else if (top > element.scrollTop + view - ROW * 2) element.scrollTop = top - view + ROW * 4;
    const left = this.left(this.execution.steps[this.selected].thread);
    if (left - GUTTER < element.scrollLeft) element.scrollLeft = left - GUTTER;
    else if (left + this.width > element.scrollLeft + element.clientWidth) element.scrollLeft = left + this.width - element.clientWidth;
  }
}

// What there is to know about the selected step.
const stepDetails = (execution, sources, index, select) => {
  const { bug } = execution;
  const step = execution.steps[index];
  const facts = [];
  const fact = (name, ...value) => facts.push(h('dt', {}, name), h('dd', {}, value));
  fact('thread', h('span', { class: 'chip', style: threadHue(step.thread) }, threadName(step.thread)),
    step.switch === 'preemption' ? ' preempts the thread before it' : step.switch === 'free' ? ' runs because the thread before it ended or waits' : '');
  const where = (name, place) => fact(name, h('b', {}, breakable(placeName(place))), place.function ? [' in ', breakable(place.function)] : '');
  where('where', step);
  if (step.library) where('inside', step.library);
  if (step.order) fact('order', step.order);
  const has = (value) => value !== null && value !== undefined;
  if (has(step.read)) fact('reads', h('code', {}, String(step.read)), ' from ',
    typeof step.reads_from === 'number' ? stepLink(step.reads_from, select) : step.reads_from === 'initial' ? 'the initial value' : 'a choice');
  const before = has(step.read) ? undefined : execution.valueBefore(index);
  if (has(step.wrote)) fact('writes', h('code', {}, String(step.wrote)), has(before) ? [' over ', h('code', {}, String(before))] : '');
  if (step.passes?.length) {
    fact(has(step.read) ? 'misses' : 'comes before', h('span', { class: 'warn' }, has(step.read) ? 'newer writes: ' : 'writes made earlier: '),
      step.passes.slice(-5).map((passed) => [stepLink(passed, select), ' ']));
  }
  const changes = step.plain?.length ? execution.plainVariables(index).filter((variable) => variable.touched === index) : [];
  if (changes.length) {
    fact('then writes', changes.slice(0, 8).map(({ name, value, before }, n) => [n ? ', ' : '', h('code', {}, `${name} = ${value}`), has(before) ? [' over ', h('code', {}, String(before))] : '']), changes.length > 8 ? '…' : '');
  }
  const readers = execution.steps.filter((other) => other.reads_from === step.step);
  if (readers.length) fact('read by', readers.slice(0, 8).map((reader) => [stepLink(reader.step, select), ' ']), readers.length > 8 ? '…' : '');
  let past = 0;
  let future = 0;
  execution.steps.forEach((_, n) => {
    if (n !== index && execution.before(n, index)) past += 1;
    if (n !== index && execution.before(index, n)) future += 1;
  });
  fact('happens-before', h('span', { class: 'key past' }, `${number(past)} before`), ' ',
      h('span', { class: 'key future' }, `${number(future)} after`), ' ',
      h('span', { class: 'key concurrent' }, `${number(execution.length - 1 - past - future)} concurrent`));
  const stack = bug.call_stacks?.[step.stack];
  return [
    h('h3', {}, `Step ${step.step} of ${execution.length}: `, h('code', {}, execution.text(index))),
    h('dl', {}, facts), excerpt(sources, step, 3), step.library ? excerpt(sources, step.library, 3) : null,
    stack?.length ? [h('h4', {}, 'Calls'), stackList(stack)] : null,
  ];
};

const variableTable = (execution, index, select) => {
  const variables = execution.variables(index);
  if (!variables.length) return null;
  return [h('h4', {}, `Shared variables after step ${index + 1}`), table(['variable', 'value', 'written by'],
    variables.map((variable) => h('tr', { class: variable.touched === index ? 'changed' : '' },
      h('td', {}, h('code', {}, variable.name ?? '?')),
      h('td', {}, h('code', {}, variable.value === undefined || variable.value === null ? '?' : String(variable.value))),
      h('td', {}, variable.writer < 0 ? 'initial' : [variable.plain ? 'after ' : '', stepLink(variable.writer + 1, select)]))), 'variables')];
};
