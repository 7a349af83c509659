// An execution: its steps, and the relations between them.

class Execution {
  constructor(bug) {
    this.bug = bug;
    this.steps = bug.trace;
    this.threads = [...new Set([
      ...this.steps.map((step) => step.thread), bug.thread,
      ...bug.waiting?.map((wait) => wait.thread) ?? [], ...bug.other ? [bug.other.thread] : [],
    ])].sort((a, b) => a - b);
    this.column = new Map(this.threads.map((thread, n) => [thread, n]));
    this.readClocks();
    this.readCoherence();
    this.ends = this.readEnds();
  }

  // Where threads stand when the bug happens: those that wait, both sides of a race, or the one that fails.
  // `from` is the step, and `other` the place in this list, that it is because of.
  readEnds() {
    const { bug, steps } = this;
    if (bug.cycle) return [];
    if (bug.waiting?.length) {
      return bug.waiting.map((wait) => {
        const from = wait.since ? wait.since - 1 : steps.findLastIndex((step) => step.thread === wait.on);
        const other = wait.since ? -1 : bug.waiting.findIndex(({ thread }) => thread === wait.on);
        return { kind: 'waits', thread: wait.thread, text: `waits ${wait.what}`, from: wait.on === undefined || other >= 0 ? -1 : from, other };
      });
    }
    if (bug.name !== 'data-race' || !bug.other) return [{ kind: 'fails', thread: bug.thread, text: bug.title, from: -1, other: -1 }];
    return [[bug.other, bug], [bug, bug.other]].map(([one, two], n) => (
      { kind: 'races', thread: one.thread, text: `${bug.title} with ${threadName(two.thread)}, at ${placeName(one).split('/').pop()}`, from: -1, other: n - 1 }));
  }

  get length() { return this.steps.length; }

  text(index) { return this.bug.relations[index]?.text ?? this.steps[index].operation; }

  location(index) { return this.bug.relations[index]?.location ?? null; }

  // Each step's vector clock; the data have only what changes within a thread.
  readClocks() {
    const width = Math.max(0, ...this.threads) + 1;
    const newest = new Map();
    this.clocks = this.steps.map((step, n) => {
      const clock = newest.get(step.thread)?.slice() ?? new Uint32Array(width);
      for (const [thread, count] of this.bug.relations[n]?.clock ?? []) {
        if (thread < width) clock[thread] = count;
      }
      newest.set(step.thread, clock);
      return clock;
    });
    if (!this.clocks.some((clock, n) => clock[this.steps[n].thread] > 0)) this.computeClocks(width);
    const counts = new Map();
    this.previous = this.steps.map((step, n) => {
      const before = counts.get(step.thread);
      counts.set(step.thread, n);
      return before ?? -1;
    });
  }

  // Searches over states are sequentially consistent and record no clocks: there, a read, creating a
  // thread and joining it synchronise.
  computeClocks(width) {
    const newest = new Map();
    const known = (thread) => newest.get(thread) ?? new Uint32Array(width);
    const merge = (into, from) => from.forEach((count, thread) => { into[thread] = Math.max(into[thread], count); });
    this.clocks = this.steps.map((step, n) => {
      const clock = known(step.thread).slice();
      clock[step.thread] += 1;
      const source = this.source(n);
      if (source >= 0) merge(clock, this.made[source]);
      const other = /^T\d+$/.test(step.object ?? '') ? Number(step.object.slice(1)) : -1;
      if (step.operation === 'join') merge(clock, known(other));
      if (step.operation === 'create') newest.set(other, clock.slice());
      newest.set(step.thread, clock);
      (this.made ??= [])[n] = clock;
      return clock;
    });
  }

  // Whether step `a` happens before step `b`.
  before(a, b) {
    const thread = this.steps[a].thread;
    if (thread === this.steps[b].thread) return a < b;
    const own = this.clocks[a][thread];
    return own > 0 && this.clocks[b][thread] >= own;
  }

  // The writes to each location in coherence order.
  readCoherence() {
    this.coherence = new Map();
    this.initial = new Map();
    this.steps.forEach((step, n) => {
      const location = this.location(n);
      if (location === null) return;
      if (step.reads_from === 'initial' && !this.initial.has(location)) this.initial.set(location, step.read);
      if (step.wrote === null || step.wrote === undefined) return;
      const order = this.coherence.get(location) ?? [];
      const newer = (step.passes ?? []).map((passed) => order.indexOf(passed - 1)).filter((at) => at >= 0);
      order.splice(newer.length ? Math.min(...newer) : order.length, 0, n);
      this.coherence.set(location, order);
    });
  }

  // The step that `index` reads from, or -1.
  source(index) {
    const from = this.steps[index].reads_from;
    return typeof from === 'number' ? from - 1 : -1;
  }

  // The write that comes right after what `index` reads, or -1.
  overwrittenBy(index) {
    const step = this.steps[index];
    if (step.reads_from === null || step.reads_from === undefined) return -1;
    const order = this.coherence.get(this.location(index)) ?? [];
    const from = this.source(index);
    const next = order[from < 0 ? 0 : order.indexOf(from) + 1];
    return next === undefined || next === index ? -1 : next;
  }

  // The edges of each relation between the steps `first` to `last`.
  edges(first, last) {
    const edges = { po: [], rf: [], co: [], fr: [], hb: [] };
    const inside = (n) => n >= first && n <= last;
    const add = (kind, from, to) => { if (inside(from) && inside(to)) edges[kind].push([from, to]); };
    for (let n = first; n <= last; n += 1) {
      add('po', this.previous[n], n);
      add('rf', this.source(n), n);
      add('fr', n, this.overwrittenBy(n));
      this.synchronises(n).forEach((from) => add('hb', from, n));
    }
    for (const order of this.coherence.values()) {
      for (let k = 1; k < order.length; k += 1) add('co', order[k - 1], order[k]);
    }
    return edges;
  }

  // The latest steps of other threads that happen before step `n` and not before the one before it.
  synchronises(n) {
    const before = this.previous[n] < 0 ? null : this.clocks[this.previous[n]];
    const found = [];
    for (const thread of this.threads) {
      const count = this.clocks[n][thread];
      if (thread === this.steps[n].thread || count <= (before?.[thread] ?? 0)) continue;
      for (let k = n - 1; k >= 0; k -= 1) {
        if (this.steps[k].thread === thread && this.clocks[k][thread] <= count) { found.push(k); break; }
      }
    }
    return found;
  }

  // What step `index` writes over, if that is known.
  valueBefore(index) {
    const location = this.location(index);
    if (location === null || this.steps[index].passes?.length) return undefined;
    const order = this.coherence.get(location) ?? [];
    const at = order.indexOf(index);
    return at > 0 ? this.steps[order[at - 1]].wrote : this.initial.get(location);
  }

  // The values of shared variables after step `index`.
  variables(index) {
    const values = new Map();
    for (let n = 0; n <= index; n += 1) {
      const step = this.steps[n];
      const location = this.location(n);
      if (location === null || step.operation === 'mark') continue;
      const known = values.get(location) ??
        { name: step.object, value: this.initial.get(location), writer: -1, touched: n };
      known.touched = n;
      if (step.wrote !== null && step.wrote !== undefined && !(step.passes?.length)) {
        known.value = step.wrote;
        known.writer = n;
      }
      values.set(location, known);
    }
    return [...values.values(), ...this.plainVariables(index)];
  }

  // The values of plain global variables behind step `index`: when its thread has come to its next step.
  plainVariables(index) {
    const values = new Map((this.bug.plain ?? []).map(({ variable, value }) => [variable, { name: variable, value, writer: -1, touched: -1, plain: true }]));
    for (let n = 0; n <= index; n += 1) {
      for (const { variable, value } of this.steps[n].plain ?? []) {
        const before = values.get(variable)?.value;
        values.set(variable, { name: variable, value, before, writer: n, touched: n, plain: true });
      }
    }
    return [...values.values()];
  }
}
