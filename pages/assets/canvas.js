// The picture of a graph: only what is in view is drawn.

const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.opened = PROGRAMS.map(() => new Set());
    this.heat = "family";
    this.x = 0; this.y = 0; this.scale = 1;
    this.hovered = null;
    this.pointers = new Map();
    this.frames = 0;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
    selected.listeners.push((from) => this.selectionChanged(from));
    this.rebuild();
  }

  rebuild() {
    this.scene = new Scene(selected.program, this.opened[selected.view]);
    this.worst = null;
    this.ask();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const first = !this.wide;
    this.wide = this.canvas.clientWidth;
    this.high = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.wide * ratio);
    this.canvas.height = Math.round(this.high * ratio);
    if (first && this.wide) {
      this.start();
      this.selectionChanged("start");
    }
    this.draw();
  }

  /** Begin with all of a small graph, or with the top of a large one at a scale one can read. */
  start() {
    this.fit();
    if (this.scale < 0.45) {
      this.scale = 0.8;
      this.y = -24;
      // Where most of what comes into view lies: a program begins with parameters from afar.
      const middles = this.scene.nodes.filter((node) => node.y < this.y + this.high / this.scale)
        .map((node) => node.x + node.width / 2).sort((a, b) => a - b);
      this.x = (middles[middles.length >> 1] ?? 0) - this.wide / 2 / this.scale;
    }
  }

  fit() {
    const { width, height } = this.scene;
    this.scale = Math.min(1.2, (this.wide - 32) / width, (this.high - 32) / height);
    this.x = width / 2 - this.wide / 2 / this.scale;
    this.y = height / 2 - this.high / 2 / this.scale;
    if (height * this.scale < this.high) this.y = Math.min(this.y, 0);
    this.ask();
  }

  zoom(factor, x = this.wide / 2, y = this.high / 2) {
    const scale = Math.min(3, Math.max(0.005, this.scale * factor));
    this.x += x / this.scale - x / scale;
    this.y += y / this.scale - y / scale;
    this.scale = scale;
    this.ask();
  }

  reveal(node) {
    const margin = 60 / this.scale;
    const right = this.x + this.wide / this.scale, bottom = this.y + this.high / this.scale;
    const seen = node.x > this.x + margin / 4 && node.x + node.width < right - margin / 4 &&
      node.y > this.y + margin / 4 && node.y + HEIGHT < bottom - margin / 4;
    if (seen) return;
    if (this.scale < 0.4) this.scale = 0.8;
    this.x = node.x + node.width / 2 - this.wide / 2 / this.scale;
    this.y = node.y + Math.min(node.height, this.high / this.scale / 2) / 2 - this.high / 2 / this.scale;
  }

  toggle(node) {
    if (!node || !node.opens) return;
    const set = this.opened[selected.view];
    const before = { x: node.x, y: node.y };
    if (!set.delete(node.path)) set.add(node.path);
    this.rebuild();
    const same = this.scene.nodes.find((other) => other.path === node.path);
    this.x += same.x + same.width / 2 - (before.x + node.width / 2);
    this.y += same.y - before.y;
    say(`${selected.program.name[node.i]} ${set.has(node.path) ? "opened" : "closed"}`);
  }

  /** Open everything of the entry, or close everything. */
  toggleAll() {
    const set = this.opened[selected.view];
    const closing = set.size > 0;
    if (closing) set.clear();
    else for (const node of this.scene.nodes) if (node.opens) set.add(node.path);
    this.rebuild();
    this.start();
  }

  selectionChanged(from) {
    if (from === "view") { this.rebuild(); this.start(); }
    if (from !== "graph" && selected.instruction >= 0) {
      const nodes = this.scene.showing(selected.instruction);
      if (nodes.length) this.reveal(nodes[0]);
    }
    this.lit = null;
    this.ask();
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colour = {
      surface: of("surface"), line: of("line"), text: of("text"), muted: of("muted"),
      accent: of("accent"), lit: of("lit"), back: of("back"), bad: of("bad"), heat: of("heat"), frame: of("frame"), fresh: of("family-4"),
      families: DATA.families.map((_, n) => of(`family-${n}`)),
    };
  }

  /** The share of the worst node that a node has of what colours are to show; null: none. */
  share(node) {
    const steps = this.scene.program === PROGRAMS[COMPILED] ? STEPS : [];
    const step = steps[node.kernel];
    const value = {
      time: () => (step ? step.measured ?? step.predicted : 0),
      bytes: () => (step ? step.read + step.written : this.scene.program.bytes[node.i]),
      flops: () => (step ? step.flops : this.scene.program.flops[node.i]),
      deviation: () => (this.scene.program.deviation ? this.scene.program.deviation[node.i] : 0),
      values: () => (this.scene.program.suspicion ? this.scene.program.suspicion[node.i] : 0),
    }[this.heat];
    return value ? value() : null;
  }

  draw() {
    if (!this.wide) return;
    this.colours();
    const { context: c, colour } = this;
    const ratio = window.devicePixelRatio || 1;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = colour.back;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const k = this.scale * ratio;
    c.setTransform(k, 0, 0, k, -this.x * k, -this.y * k);
    const box = [this.x, this.y, this.x + this.wide / this.scale, this.y + this.high / this.scale];
    if (!this.lit) {
      this.lit = new Set([...selected.instructions].flatMap((i) => this.scene.showing(i)));
    }
    if (this.worst === null) {
      this.worst = this.scene.nodes.reduce((most, node) => Math.max(most, this.share(node) ?? 0), 0);
      this.explain();
    }
    this.painted = 0;
    const frames = this.scene.nodes.filter((node) => node.inside);
    for (const node of frames) this.frame(node, box);
    this.drawEdges(box);
    for (const node of this.scene.nodes) if (!node.inside) this.node(node, box);
    this.drawTitles();
    this.frames++;
  }

  drawTitles() {
    const { context: c, colour } = this;
    c.font = `600 12px ${MONO}`;
    c.fillStyle = colour.muted;
    if (this.scale > 0.3) for (const [title, x, y] of this.scene.titles) c.fillText(title.slice(0, 40), x, y);
  }

  drawEdges([left, top, right, bottom]) {
    const { context: c, colour } = this;
    const lit = [];
    c.lineWidth = Math.max(1, 0.7 / this.scale);
    c.strokeStyle = colour.line;
    c.beginPath();
    for (const edge of this.scene.edges) {
      if (edge.bottom < top || edge.top > bottom || edge.right < left || edge.left > right) continue;
      const chosen = edge.source === selected.instruction || edge.target === selected.instruction ||
        (selected.path.has(edge.source) && selected.path.has(edge.target));
      if (chosen) lit.push(edge);
      else if (edge.long) this.stubs(edge);
      else this.curve(edge);
    }
    c.stroke();
    c.strokeStyle = colour.accent;
    c.lineWidth = Math.max(2, 1.4 / this.scale);
    c.beginPath();
    for (const edge of lit) this.curve(edge);
    c.stroke();
  }

  /** Draw the ends of an edge that is too long to follow. */
  stubs({ points: [[x, y], [u, v]] }) {
    const { context: c } = this;
    c.moveTo(x, y);
    c.lineTo(x, y + 9);
    c.moveTo(u, v - 9);
    c.lineTo(u, v);
  }

  curve({ points }) {
    const { context: c } = this;
    c.moveTo(points[0][0], points[0][1]);
    for (let n = 1; n < points.length; n++) {
      const [x, y] = points[n - 1], [u, v] = points[n];
      if (Math.abs(x - u) < 0.5 || this.scale < 0.15) c.lineTo(u, v);
      else c.bezierCurveTo(x, (y + v) / 2, u, (y + v) / 2, u, v);
    }
  }

  outside(node, [left, top, right, bottom]) {
    return node.x > right || node.x + node.width < left || node.y > bottom || node.y + node.height < top;
  }

  fill(node) {
    const { colour } = this;
    const share = this.share(node);
    if (share === null) return colour.surface;
    const part = this.worst ? Math.sqrt(share / this.worst) : 0;
    return `color-mix(in oklab, ${colour.heat} ${Math.round(85 * part)}%, ${colour.surface})`;
  }

  outline(node) {
    const { context: c, colour } = this;
    const chosen = node.i === selected.instruction;
    const on = this.lit.has(node) || selected.path.has(node.i);
    c.strokeStyle = on ? colour.accent : colour.line;
    c.lineWidth = on ? Math.max(chosen ? 2.5 : 1.8, 1.4 / this.scale) : 1;
  }

  frame(node, box) {
    if (this.outside(node, box)) return;
    const { context: c, colour } = this;
    const program = this.scene.program;
    c.fillStyle = this.lit.has(node) ? colour.lit : colour.frame;
    this.outline(node);
    c.beginPath();
    c.roundRect(node.x, node.y, node.width, node.height, 8);
    c.fill();
    c.stroke();
    if (this.scale < 0.2) return;
    c.font = `600 12px ${MONO}`;
    c.fillStyle = colour.text;
    const number = node.kernel >= 0 ? `#${node.kernel} ` : "";
    c.fillText(`− ${number}${program.labels[node.i][0]}`, node.x + 12, node.y + 19, node.width - 20);
  }

  node(node, box) {
    if (this.outside(node, box)) return;
    this.painted++;
    const { context: c, colour } = this;
    const program = this.scene.program;
    const family = colour.families[program.family[node.i]];
    const marked = program.marked && program.marked.has(node.i);
    if (this.scale < 0.12) {
      c.fillStyle = this.lit.has(node) ? colour.accent : marked ? colour.bad : family;
      c.fillRect(node.x, node.y, node.width, node.height);
      return;
    }
    c.fillStyle = this.lit.has(node) && this.heat === "family" ? colour.lit : this.fill(node);
    this.outline(node);
    if (program.added?.has(node.i) || program.changed?.has(node.i)) c.strokeStyle = colour.fresh;
    if (marked) { c.strokeStyle = colour.bad; c.lineWidth = 3; }
    c.beginPath();
    c.roundRect(node.x, node.y, node.width, node.height, 6);
    c.fill();
    c.stroke();
    c.fillStyle = family;
    c.fillRect(node.x + 1, node.y + 6, 4, node.height - 12);
    if (this.scale < 0.3) return;
    const [first, second] = program.labels[node.i];
    c.font = `600 12px ${MONO}`;
    c.fillStyle = colour.text;
    c.fillText(first, node.x + 13, node.y + 17, node.width - 30);
    c.font = `11px ${MONO}`;
    c.fillStyle = colour.muted;
    c.fillText(second, node.x + 13, node.y + 32, node.width - 22);
    if (node.opens) {
      c.font = `600 14px ${MONO}`;
      c.fillText("+", node.x + node.width - 14, node.y + 16);
    }
  }

  listen() {
    const { canvas } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const node = (event) => {
      const [x, y] = at(event);
      return this.scene.at(this.x + x / this.scale, this.y + y / this.scale);
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / (event.ctrlKey ? 120 : 500)), ...at(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at(event));
      this.moved = false;
    });
    canvas.addEventListener("pointermove", (event) => this.pointerMoved(event, at(event), node));
    canvas.addEventListener("pointerup", (event) => {
      this.pointers.delete(event.pointerId);
      if (!this.moved) this.pressed(node(event), event.shiftKey);
    });
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => hover(null));
    canvas.addEventListener("dblclick", (event) => this.toggle(node(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  pointerMoved(event, [x, y], node) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.hovered = node(event);
      this.canvas.style.cursor = this.hovered ? "pointer" : "grab";
      hover(this.hovered, event.clientX, event.clientY);
      return;
    }
    if (Math.hypot(x - before[0], y - before[1]) < 3 && !this.moved) return;
    this.moved = true;
    hover(null);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [u, v] = others[0][1];
      const factor = Math.hypot(x - u, y - v) / Math.max(1, Math.hypot(before[0] - u, before[1] - v));
      this.zoom(factor, u, v);
    } else {
      this.x -= (x - before[0]) / this.scale;
      this.y -= (y - before[1]) / this.scale;
    }
    this.pointers.set(event.pointerId, [x, y]);
    this.ask();
  }

  pressed(node, second) {
    if (!node) selected.choose([], { from: "graph" });
    else if (second && selected.instruction >= 0) showPath(selected.instruction, node.i, "graph");
    else if (node.kernel >= 0 && selected.compiled && !node.inside) selected.step(node.kernel, "graph");
    else selected.choose([node.i], { from: "graph" });
  }

  key(event) {
    const program = selected.program;
    const i = selected.instruction;
    const go = (to) => { if (to !== undefined) selected.choose([to], { from: "keys" }); };
    const moves = {
      ArrowUp: () => go(program.operands[i]?.[0]),
      ArrowDown: () => go(i < 0 ? this.scene.nodes[0]?.i : program.users[i]?.[0]),
      ArrowLeft: () => go(this.beside(i, -1)),
      ArrowRight: () => go(this.beside(i, 1)),
      Enter: () => this.toggle(this.scene.showing(i)[0]),
      "+": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      "0": () => this.fit(),
      Escape: () => selected.choose([], { from: "keys" }),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
    if (selected.instruction >= 0) say(program.line(selected.instruction).slice(0, 300));
  }

  /** The next node of the same layer to the left or right. */
  beside(i, direction) {
    const [own] = i >= 0 ? this.scene.showing(i) : [];
    if (!own) return undefined;
    const row = this.scene.nodes.filter((n) => n.y === own.y && (n.x - own.x) * direction > 0);
    return row.sort((a, b) => (a.x - b.x) * direction)[0]?.i;
  }
}
