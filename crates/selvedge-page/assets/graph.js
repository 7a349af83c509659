// The execution graph: events as nodes, relations as edges. It can be zoomed and moved.

const NODE = { height: 34, gap: 60, down: 52 };
// What edges need beside the first and the last column.
const MARGIN = 44;
// The widest text of a node, in characters.
const widest = () => (window.innerWidth < 600 ? 20 : 34);
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
    const longest = Math.max(...execution.steps.map((step, n) => `${step.step} ${execution.text(n)}`.length), 16);
    this.letters = Math.min(widest(), longest);
    this.nodeWidth = this.letters * 7.3 + 20;
    this.picture = s('svg', { class: 'graph', role: 'img', 'aria-label': 'execution graph' });
    this.scope = h('span', { class: 'dim' });
    const boxes = RELATIONS.map(([kind, name]) => h('label', { class: `relation ${kind}` },
      h('input', { type: 'checkbox', checked: this.shown[kind], 'data-relation': kind, onchange: (event) => { this.shown[kind] = event.target.checked; this.draw(); } }),
      h('i', {}), `${kind} `, h('span', { class: 'dim wide' }, name)));
    if (execution.bug.cycle) boxes.push(h('span', { class: 'relation cycle' }, h('i', {}), 'repeats for ever'));
    const tool = (name, label, action) => h('button', { type: 'button', title: label, 'aria-label': label, onclick: action }, name);
    this.element = h('div', { class: 'graph-view' },
      h('div', { class: 'bar' }, boxes, h('span', { class: 'space' }),
        tool('−', 'zoom out', () => this.zoom(1.25)), tool('+', 'zoom in', () => this.zoom(0.8)), tool('fit', 'show everything', () => this.fit()), this.scope),
      this.picture);
    this.listen();
  }

  position(index) {
    const step = this.execution.steps[index];
    return [this.execution.column.get(step.thread) * (this.nodeWidth + NODE.gap) + MARGIN, (index - this.first) * NODE.down + 44];
  }

  draw() {
    const { execution } = this;
    const around = Math.max(0, this.selected);
    this.first = Math.max(0, Math.min(around - SHOWN / 2, execution.length - SHOWN));
    this.last = Math.min(execution.length - 1, this.first + SHOWN - 1);
    this.scope.textContent = execution.length > SHOWN ? `steps ${this.first + 1} to ${this.last + 1} of ${number(execution.length)}` : '';
    const edges = execution.edges(this.first, this.last);
    const lines = RELATIONS.filter(([kind]) => this.shown[kind]).flatMap(([kind]) => edges[kind].map((edge) => this.edge(kind, edge)));
    const nodes = [];
    for (let n = this.first; n <= this.last; n += 1) nodes.push(this.node(n));
    const heads = execution.threads.map((thread, n) =>
      s('text', { x: n * (this.nodeWidth + NODE.gap) + MARGIN + this.nodeWidth / 2, y: 24, class: 'head', style: threadHue(thread) }, threadName(thread)));
    const markers = [...RELATIONS, ['cycle']].map(([kind]) => s('marker', { id: `to-${kind}`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse', class: kind },
      s('path', { d: 'M0 0 L8 4 L0 8 z' })));
    clear(this.picture, s('defs', {}, markers), heads, this.lasso(), lines, nodes);
    if (!this.box) {
      // Text that is too small to be read shows nothing.
      this.fit();
      const tooSmall = this.box[2] / Math.max(1, this.picture.getBoundingClientRect().width) / 1.25;
      if (tooSmall > 1) {
        const [x, y] = this.position(around);
        this.zoom(1 / tooSmall);
        const [width, height] = this.size();
        const within = (at, most) => Math.max(0, Math.min(at, most));
        this.box[0] = within(x + this.nodeWidth / 2 - this.box[2] / 2, width - this.box[2]);
        this.box[1] = within(y - this.box[3] / 2, height - this.box[3]);
        this.view();
      }
    }
  }

  // The steps of a lasso that repeat: a frame around them, with an arrow back to the first.
  lasso() {
    const { bug, length } = this.execution;
    if (!bug.cycle || bug.cycle > this.last + 1) return [];
    const [from, to] = [Math.max(this.first, bug.cycle - 1), this.last];
    const y = (n) => (n - this.first) * NODE.down + 44;
    const [top, bottom] = [y(from) - 9, y(to) + NODE.height + 9];
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
    const whole = `${step.step} ${text}`;
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
    s('rect', { x, y, width: this.nodeWidth, height: NODE.height, rx: 6 }),
    s('text', { x: x + 10, y: y + 21 }, short));
  }

  edge(kind, [from, to]) {
    const [x1, y1] = this.position(from);
    const [x2, y2] = this.position(to);
    const [w, half] = [this.nodeWidth, NODE.height / 2];
    const bend = { po: 0, rf: 14, co: 26, fr: -26, hb: 36 }[kind];
    let path;
    if (kind === 'po') path = `M${x1 + w / 2} ${y1 + NODE.height} L${x2 + w / 2} ${y2}`;
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
    return [this.execution.threads.length * (this.nodeWidth + NODE.gap) - NODE.gap + 2 * MARGIN, (this.last - this.first + 1) * NODE.down + 60];
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
    if (before !== this.first || y < top || y + NODE.height > top + height) this.box[1] = y - height / 2;
    if (x < left || x + this.nodeWidth > left + width) this.box[0] = x - width / 2 + this.nodeWidth / 2;
    this.view();
  }
}
