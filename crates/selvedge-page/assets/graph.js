// The execution graph: events as nodes, relations as edges. It can be zoomed and moved.

const NODE = { height: 34, gap: 60, down: 52, letter: 7.3, padding: 20 };
// What edges need beside the first and the last column.
const MARGIN = 44;
// The narrowest and the widest text of a node, in characters; with many threads, nodes have numbers only.
const [NARROWEST, WIDEST, MANY] = [14, 34, 12];
// So many units of the drawing a pixel are still legible. With many threads, the picture tells more than its text.
const [LEGIBLE, OVERVIEW] = [1.25, 3.2];
const SHOWN = 240;
const RELATIONS = [
  ['po', 'program order'], ['rf', 'reads from'], ['co', 'coherence'], ['fr', 'from-read'], ['hb', 'synchronises (happens-before)'],
];

class ExecutionGraph {
  constructor(execution, select) {
    this.execution = execution;
    this.select = select;
    this.selected = -1;
    this.shown = { po: true, rf: true, co: true, fr: true, hb: false };
    this.longest = Math.max(...execution.steps.map((step, n) => `${step.step} ${execution.text(n)}`.length), ...execution.ends.map((end) => end.text.length), 16);
    this.measure(0);
    this.picture = s('svg', { class: 'graph', role: 'img', 'aria-label': 'execution graph' });
    this.scope = h('span', { class: 'dim' });
    const boxes = RELATIONS.map(([kind, name]) => h('label', { class: `relation ${kind}` },
      h('input', { type: 'checkbox', checked: this.shown[kind], 'data-relation': kind, onchange: (event) => { this.shown[kind] = event.target.checked; this.draw(); } }),
      h('i', {}), `${kind} `, h('span', { class: 'dim wide' }, name)));
    for (const [kind, name] of [['waits', 'waits for'], ['races', 'races with']]) {
      if (execution.ends.some((end) => end.kind === kind)) boxes.push(h('span', { class: `relation ${kind}` }, h('i', {}), name));
    }
    if (execution.bug.cycle) boxes.push(h('span', { class: 'relation cycle' }, h('i', {}), 'repeats for ever'));
    const tool = (name, label, action) => h('button', { type: 'button', title: label, 'aria-label': label, onclick: action }, name);
    this.element = h('div', { class: 'graph-view' },
      h('div', { class: 'bar' }, boxes, h('span', { class: 'space' }),
        tool('−', 'zoom out', () => this.zoom(1.25)), tool('+', 'zoom in', () => this.zoom(0.8)), tool('fit', 'show everything', () => this.fit()), this.scope),
      this.picture);
    this.listen();
  }

  // The width of nodes with which all columns fit into so many pixels, within limits.
  measure(pixels) {
    const threads = this.execution.threads.length;
    this.many = threads > MANY;
    [this.gap, this.down, this.height] = this.many ? [16, 34, 24] : [NODE.gap, NODE.down, NODE.height];
    const room = (pixels * LEGIBLE - 2 * MARGIN) / threads - this.gap - NODE.padding;
    const fitting = Math.max(NARROWEST, Math.floor(room / NODE.letter));
    this.letters = this.many ? 4 : Math.min(WIDEST, this.longest, fitting);
    this.nodeWidth = this.letters * NODE.letter + NODE.padding;
  }

  column(thread) { return this.execution.column.get(thread) * (this.nodeWidth + this.gap) + MARGIN; }

  // Where the node of a step is; behind the last step are those of the ends.
  position(index) {
    const thread = this.execution.steps[index]?.thread ?? this.execution.ends[index - this.execution.length].thread;
    return [this.column(thread), (index - this.first) * this.down + 44];
  }

  draw() {
    const { execution } = this;
    const around = Math.max(0, this.selected);
    this.first = Math.max(0, Math.min(around - SHOWN / 2, execution.length - SHOWN));
    this.last = Math.min(execution.length - 1, this.first + SHOWN - 1);
    this.scope.textContent = execution.length > SHOWN ? `steps ${this.first + 1} to ${this.last + 1} of ${number(execution.length)}` : '';
    if (!this.box) this.measure(this.picture.getBoundingClientRect().width);
    const edges = execution.edges(this.first, this.last);
    const lines = RELATIONS.filter(([kind]) => this.shown[kind]).flatMap(([kind]) => edges[kind].map((edge) => this.edge(kind, edge)));
    const nodes = [];
    for (let n = this.first; n <= this.last; n += 1) nodes.push(this.node(n));
    this.shownEnds().forEach((end, n) => {
      const from = end.other >= 0 ? execution.length + end.other : end.from;
      if (from >= this.first) lines.push(this.edge(end.kind, [from, execution.length + n]));
      nodes.push(this.ending(end, execution.length + n));
    });
    const heads = execution.threads.map((thread) =>
      s('text', { x: this.column(thread) + this.nodeWidth / 2, y: 24, class: 'head', style: threadHue(thread) }, threadName(thread)));
    const markers = [...RELATIONS, ['cycle'], ['waits'], ['races']].map(([kind]) => s('marker', { id: `to-${kind}`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse', class: kind },
      s('path', { d: 'M0 0 L8 4 L0 8 z' })));
    clear(this.picture, s('defs', {}, markers), heads, this.lasso(), lines, nodes);
    if (!this.box) {
      // Text that is too small to be read shows nothing.
      this.fit();
      const tooSmall = this.box[2] / Math.max(1, this.picture.getBoundingClientRect().width) / (this.many ? OVERVIEW : LEGIBLE);
      if (tooSmall > 1) {
        this.zoom(1 / tooSmall);
        const [x, y] = this.position(this.many ? this.busiest() : around);
        const [width, height] = this.size();
        const within = (at, most) => Math.max(0, Math.min(at, most));
        this.box[0] = within(x + this.nodeWidth / 2 - this.box[2] / 2, width - this.box[2]);
        this.box[1] = within(y - this.box[3] / 2, height - this.box[3]);
        this.view();
      }
    }
  }

  // The step in the middle of the rows in view that have steps of the most threads.
  busiest() {
    const rows = Math.floor(this.box[3] / this.down);
    let [best, most] = [this.first, 0];
    for (let n = this.first; n + rows <= this.last + 1; n += 1) {
      const threads = new Set(this.execution.steps.slice(n, n + rows).map((step) => step.thread)).size;
      if (threads > most) [best, most] = [n + Math.floor(rows / 2), threads];
    }
    return best;
  }

  // The steps of a lasso that repeat: a frame around them, with an arrow back to the first.
  lasso() {
    const { bug, length } = this.execution;
    if (!bug.cycle || bug.cycle > this.last + 1) return [];
    const [from, to] = [Math.max(this.first, bug.cycle - 1), this.last];
    const y = (n) => (n - this.first) * this.down + 44;
    const [top, bottom] = [y(from) - 9, y(to) + this.height + 9];
    const [left, right] = [12, this.size()[0] - 3];
    const whole = from === bug.cycle - 1 && to === length - 1;
    return [s('path', { d: `M${left} ${top} H${right} V${bottom} H${left}`, class: 'edge cycle' }),
      s('path', { d: `M${left} ${bottom} V${top}`, class: 'edge cycle', 'marker-end': whole ? 'url(#to-cycle)' : null, 'data-edge': `cycle ${to + 1} ${from + 1}` }),
      s('text', { x: left + 14, y: top + 4, class: 'repeats' }, 'for ever ↻')];
  }

  node(n) {
    const [x, y] = this.position(n);
    const step = this.execution.steps[n];
    const text = this.execution.text(n);
    const whole = this.many ? String(step.step) : `${step.step} ${text}`;
    const short = whole.length > this.letters ? `${whole.slice(0, this.letters - 1)}…` : whole;
    let relation = '';
    if (this.selected >= 0 && n !== this.selected) {
      relation = this.execution.before(n, this.selected) ? ' past' : this.execution.before(this.selected, n) ? ' future' : '';
    }
    const cycle = this.execution.bug.cycle && step.step >= this.execution.bug.cycle ? ' cycle' : '';
    return s('g', {
      class: `node${n === this.selected ? ' selected' : ''}${cycle}${relation}`, 'data-step': step.step, style: threadHue(step.thread),
      onclick: () => { if (!this.moved) this.select(n); },
    }, s('title', {}, `step ${step.step}: ${text} (${placeName(step)})`),
    s('rect', { x, y, width: this.nodeWidth, height: this.height, rx: 6 }),
    s('text', { x: x + 10, y: y + this.height / 2 + 4 }, short));
  }

  shownEnds() { return this.last === this.execution.length - 1 ? this.execution.ends : []; }

  ending(end, n) {
    const [x, y] = this.position(n);
    const short = this.many ? '✗' : end.text.length > this.letters ? `${end.text.slice(0, this.letters - 1)}…` : end.text;
    return s('g', { class: `ending ${end.kind}`, style: threadHue(end.thread) }, s('title', {}, `${threadName(end.thread)}: ${end.text}`),
      s('rect', { x, y, width: this.nodeWidth, height: this.height, rx: 6 }), s('text', { x: x + 10, y: y + this.height / 2 + 4 }, short));
  }

  edge(kind, [from, to]) {
    const [x1, y1] = this.position(from);
    const [x2, y2] = this.position(to);
    const [w, half] = [this.nodeWidth, this.height / 2];
    const bend = { po: 0, rf: 14, co: 26, fr: -26, hb: 36, waits: -14, races: 0 }[kind];
    let path;
    if (kind === 'po') path = `M${x1 + w / 2} ${y1 + this.height} L${x2 + w / 2} ${y2}`;
    else if (x1 === x2) {
      const side = bend >= 0 ? x1 + w : x1;
      const out = side + (bend >= 0 ? 22 + bend : bend - 22);
      path = `M${side} ${y1 + half} C${out} ${y1 + half} ${out} ${y2 + half} ${side} ${y2 + half}`;
    } else {
      const right = x1 < x2;
      const [a, b] = right ? [x1 + w, x2] : [x1, x2 + w];
      const pull = right ? 34 : -34;
      path = `M${a} ${y1 + half + bend / 4} C${a + pull} ${y1 + half + bend} ${b - pull} ${y2 + half + bend / 4} ${b} ${y2 + half + bend / 4}`;
    }
    return s('path', { d: path, class: `edge ${kind}`, 'marker-end': `url(#to-${kind})`, 'data-edge': `${kind} ${from + 1} ${to + 1}` });
  }

  // The width and height of the whole drawing.
  size() {
    return [this.execution.threads.length * (this.nodeWidth + this.gap) - this.gap + 2 * MARGIN, (this.last - this.first + 1 + this.shownEnds().length) * this.down + 60];
  }

  fit() {
    const [width, height] = this.size();
    const view = this.picture.getBoundingClientRect();
    const scale = Math.max(width / Math.max(1, view.width), Math.min(height / Math.max(1, view.height), 3.2 * width / Math.max(1, view.width)), 0.6);
    this.box = [Math.min(-10, (width - view.width * scale) / 2), 0, view.width * scale, view.height * scale];
    this.view();
  }

  view() { this.picture.setAttribute('viewBox', this.box.join(' ')); }

  zoom(factor, x, y) {
    if (!this.box) return;
    const [left, top, width, height] = this.box;
    const [cx, cy] = [x ?? left + width / 2, y ?? top + height / 2];
    this.box = [cx - (cx - left) * factor, cy - (cy - top) * factor, width * factor, height * factor];
    this.view();
  }

  move(dx, dy) {
    this.box[0] += dx;
    this.box[1] += dy;
    this.view();
  }

  listen() {
    const scale = () => this.box[2] / this.picture.clientWidth;
    this.picture.addEventListener('wheel', (event) => {
      event.preventDefault();
      const view = this.picture.getBoundingClientRect();
      const [x, y] = [this.box[0] + (event.clientX - view.left) * scale(), this.box[1] + (event.clientY - view.top) * scale()];
      if (event.ctrlKey || !event.shiftKey) this.zoom(event.deltaY > 0 ? 1.1 : 0.9, x, y);
      else this.move(0, event.deltaY * scale());
    }, { passive: false });
    let last = null;
    this.picture.addEventListener('pointerdown', (event) => { last = [event.clientX, event.clientY]; this.moved = false; });
    this.picture.addEventListener('pointermove', (event) => {
      if (!last || !(event.buttons & 1)) return;
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
      if (Math.abs(dx) + Math.abs(dy) > 3) this.moved = true;
      if (!this.moved) return;
      last = [event.clientX, event.clientY];
      this.move(-dx * scale(), -dy * scale());
    });
    this.picture.addEventListener('pointerup', () => { last = null; });
  }

  mark(index) {
    this.selected = index;
    if (!this.box || !this.picture.isConnected) return;
    const before = this.first;
    this.draw();
    const [x, y] = this.position(index);
    const [left, top, width, height] = this.box;
    if (before !== this.first || y < top || y + this.height > top + height) this.box[1] = y - height / 2;
    if (x < left || x + this.nodeWidth > left + width) this.box[0] = x - width / 2 + this.nodeWidth / 2;
    this.view();
  }
}
