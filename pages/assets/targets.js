// The C of each target, the loops that it is made of, and the lines that compute each instruction.

/** The text of a target, by lines, and its loops; which steps call each function. */
class Target {
  constructor({ name, functions, nests, steps }, number) {
    Object.assign(this, { name, number, nests });
    this.functionOf = steps.map(([called]) => called);
    this.members = steps.map(([, members]) => members);
    this.arrays = steps.map(([, , arrays]) => arrays);
    this.ranges = steps.map(([, , , lines]) => new Map(lines.map(([i, ...ends]) => [i, ends]))); // first, last, …
    this.lines = []; // { text, called: its function, at: the line of that }
    this.loops = []; // { called, nest: null for the function itself, line: of the text }
    this.firstOf = new Map();
    for (const [called, text] of Object.entries(functions)) {
      this.firstOf.set(called, this.lines.length);
      this.loops.push({ called, nest: null, line: this.lines.length });
      for (const nest of nests[called]) this.loops.push({ called, nest, line: this.lines.length + nest[4] });
      text.replace(/\n$/, "").split("\n").forEach((line, at) => this.lines.push({ text: line, called, at }));
      this.lines.push({ text: "", called: null, at: 0 });
    }
  }

  /** The steps that a function is called by. */
  stepsOf(called) {
    return this.functionOf.map((own, step) => (own === called ? step : -1)).filter((step) => step >= 0);
  }

  /** What lights up of the selection, by function: the numbers of its lines and of the lines at
   * which loops begin; all of both, null, where kernels are selected, or no lines are known. */
  get lit() {
    if (this.seen === selected.instructions && this.seenSteps === selected.steps) return this.found;
    this.seen = selected.instructions;
    this.seenSteps = selected.steps;
    this.found = new Map();
    const wanted = [...new Set([...selected.instructions].map((i) => selected.inCompiled(i)))];
    // Of other targets, whose steps are others: those that compute what is selected.
    this.litSteps = this.number === 0 ? [...selected.steps]
      : this.members.map((_, step) => step).filter((step) => this.members[step].some((i) => wanted.includes(i)));
    const computing = this.ranges.flatMap((own, step) => (wanted.some((i) => own.has(i)) ? [step] : []));
    for (const step of selected.whole ? this.litSteps : [...this.litSteps, ...computing]) {
      const called = this.functionOf[step];
      if (called) this.light(called, selected.whole ? [] : wanted.flatMap((i) => this.ranges[step].get(i) ?? []));
    }
    return this.found;
  }

  /** Light lines of a function up, by the ends of their runs; all of it if there are none. */
  light(called, ends) {
    const own = this.found.get(called) ?? { lines: new Set(), loops: new Set(), around: new Set() };
    for (let n = 0; n < ends.length; n += 2) {
      for (let at = ends[n]; at <= ends[n + 1]; at++) own.lines.add(at);
    }
    for (const at of own.lines) {
      own.loops.add(this.loopAt(called, at)?.[4] ?? -1);
      for (const nest of this.nests[called]) if (nest[4] <= at && at <= nest[5]) own.around.add(nest[4]);
    }
    this.found.set(called, ends.length || this.found.get(called) ? own : null);
  }

  /** Select a function, or a loop of it: what is computed in it. */
  choose(called, nest, from) {
    const steps = this.stepsOf(called);
    const inside = nest ? this.computedOn(called, nest[4], nest[5]) : [];
    const members = inside.length ? inside : steps.flatMap((step) => this.members[step]);
    const loop = nest ? { target: this.number, called, nest } : null;
    const own = members.map((i) => selected.fromCompiled(i)).filter((i) => i >= 0);
    selected.choose(own, { ...(this.number === 0 ? { steps } : {}), whole: true, from, loop });
  }

  /** Select what is computed on a line; of one on which nothing is, or a loop begins, the loop. */
  chooseLine(called, at, from) {
    const nest = this.loopAt(called, at);
    const own = this.computedOn(called, at, at).map((i) => selected.fromCompiled(i)).filter((i) => i >= 0);
    if (nest?.[4] === at || !own.length) this.choose(called, nest, from);
    else selected.choose(own, { ...(this.number === 0 ? { steps: this.stepsOf(called) } : {}), whole: false, from });
  }

  /** The instructions that are computed on some lines of a function. */
  computedOn(called, first, last) {
    const touches = (ends) => ends.some((begin, n) => n % 2 === 0 && begin <= last && first <= ends[n + 1]);
    return [...new Set(this.stepsOf(called).flatMap((step) =>
      [...this.ranges[step]].filter(([, ends]) => touches(ends)).map(([i]) => i)))];
  }

  /** The instructions that are computed in a loop, outside of the loops in it. */
  computedBy({ called, nest }) {
    const found = new Set();
    for (let at = nest[4]; at <= nest[5]; at++) {
      if (this.loopAt(called, at) === nest) for (const i of this.computedOn(called, at, at)) found.add(i);
    }
    return [...found];
  }

  /** The innermost loop of a function that a line is in. */
  loopAt(called, at) {
    return this.nests[called].findLast((nest) => nest[4] <= at && at <= nest[5]) ?? null;
  }

  /** Whether a line of a function lights up: "lit", or "around" as the head of a loop around one. */
  lineClass(called, at) {
    if (called === null || !this.lit.has(called)) return "";
    const { loop } = selected, own = this.lit.get(called);
    if (loop?.target === this.number) return loop.called === called && loop.nest[4] <= at && at <= loop.nest[5] ? "lit" : "";
    if (!own || own.lines.has(at)) return "lit";
    return own.around.has(at) ? "around" : "";
  }

  /** The same of a loop, and of the function itself, which is one around all. */
  loopClass({ called, nest }) {
    if (!this.lit.has(called)) return "";
    const { loop } = selected, own = this.lit.get(called);
    if (loop?.target === this.number) {
      return loop.called === called && nest && loop.nest[4] <= nest[4] && nest[5] <= loop.nest[5] ? "lit" : "";
    }
    if (!own || own.loops.has(nest ? nest[4] : -1)) return "lit";
    return !nest || own.around.has(nest[4]) ? "around" : "";
  }

  /** The instructions that stored the arrays of a loop, by their names in C. */
  arraysOf({ called, nest }) {
    const steps = this.stepsOf(called);
    const step = steps.find((one) => this.litSteps?.includes(one)) ?? steps[0];
    const known = step === undefined ? {} : this.arrays[step];
    return nest[6].filter((name) => name in known).map((name) => [name, known[name]]);
  }
}

const TARGETS = DATA.kernels ? DATA.kernels.targets.map((target, number) => new Target(target, number)) : [];
const target = () => TARGETS[selected.target];

/** The head of a loop as one reads it. */
function loopHead([, variable, extent, kind]) {
  return `for ${variable} < ${extent}${kind === "serial" ? "" : `  by ${kind}`}`;
}

/** A list with a choice of the target above it. */
function withTargets(list) {
  const choice = element("select", { "aria-label": `Target of ${list.root.getAttribute("aria-label")}`, change: () => selected.aim(Number(choice.value)) },
    ...TARGETS.map(({ name }, n) => element("option", { value: n }, name)));
  const root = TARGETS.length < 2 ? list.root : element("div", { class: "column" },
    element("div", { class: "bar-of-tools" }, element("label", {}, "Target: ", choice)), list.root);
  return { root, refresh: () => { choice.value = String(selected.target); list.refresh(); }, reveal: () => list.reveal() };
}

/** The C of all kernels of the target. */
function cLines() {
  const lines = () => target().lines;
  return withTargets(new Lines("C", {
    count: () => lines().length,
    line: (n) => [part("number", String(n + 1)), ...coloured(lines()[n].text)],
    chosen: (n) => {
      const { called, at } = lines()[n];
      if (called !== null) target().chooseLine(called, at, "c");
    },
    lit: (n) => target().lineClass(lines()[n].called, lines()[n].at),
    first: () => firstOf(lines(), ({ called, at }) => target().lineClass(called, at)),
  }));
}

/** The first row that lights up; -1 if none does. */
function firstOf(rows, kind) {
  return rows.findIndex((row) => kind(row) === "lit");
}

/** The loops of all kernels of the target: what they run over, who shares them, what they read. */
function loopLines() {
  const loops = () => target().loops;
  return withTargets(new Lines("Loops", {
    count: () => loops().length,
    line: (n) => {
      const row = loops()[n];
      if (!row.nest) return [part("name", row.called)];
      const [depth, variable, extent, kind, , , , calls] = row.nest;
      const label = (i) => PROGRAMS[COMPILED].labels[i][0];
      const arrays = target().arraysOf(row).map(([name, i]) => `${name} ${label(i)}`);
      return [`  ${"  ".repeat(depth)}for `, part("name", variable), ` < ${extent}`,
        part("opcode", kind === "serial" ? "" : ` by ${kind}`), `  ${target().computedBy(row).map(label).join(" ")}`,
        part("muted", `  ${[...arrays, ...calls].join(", ")}`)];
    },
    chosen: (n) => target().choose(loops()[n].called, loops()[n].nest, "loops"),
    lit: (n) => target().loopClass(loops()[n]),
    first: () => firstOf(loops(), (row) => target().loopClass(row)),
  }));
}

const C_WORD = /\b(?:const|static|void|for|if|else|return|float|double|int64_t|int32_t|uint\w+|int\w*|while|do|switch|case|break|HLO_RESTRICT|__global__|__shared__|blockIdx|threadIdx|gridDim|blockDim)\b|#pragma.*|\/\/.*/g;

/** A line of C with its keywords in a colour of their own. */
function coloured(line) {
  const parts = [];
  let end = 0;
  for (const found of line.matchAll(C_WORD)) {
    parts.push(line.slice(end, found.index), part(found[0].startsWith("#") ? "muted" : "opcode", found[0]));
    end = found.index + found[0].length;
  }
  parts.push(line.slice(end));
  return parts;
}
