// The C of each target, and the loops that it is made of.

/** The text of a target, by lines, and its loops; which steps call each function. */
class Target {
  constructor({ name, functions, nests, steps }, number) {
    Object.assign(this, { name, number, nests });
    this.functionOf = steps.map(([called]) => called);
    this.members = steps.map(([, members]) => members);
    this.arrays = steps.map(([, , arrays]) => arrays);
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

  /** The functions of what is selected: of steps, of which other targets have others, by their
   * members. */
  get lit() {
    if (this.seen !== selected.instructions || this.seenSteps !== selected.steps) {
      this.seen = selected.instructions;
      this.seenSteps = selected.steps;
      const wanted = new Set([...selected.instructions].map((i) => selected.inCompiled(i)));
      const steps = this.number === 0 ? [...selected.steps]
        : this.members.map((_, step) => step).filter((step) => this.members[step].some((i) => wanted.has(i)));
      this.litFunctions = new Set(steps.map((step) => this.functionOf[step]).filter(Boolean));
      this.litSteps = steps;
    }
    return this.litFunctions;
  }

  /** Select a function, or a loop of it. */
  choose(called, nest, from) {
    const steps = this.stepsOf(called);
    const members = steps.flatMap((step) => this.members[step].map((i) => selected.fromCompiled(i)));
    const loop = nest ? { target: this.number, called, nest } : null;
    selected.choose(members.filter((i) => i >= 0), { ...(this.number === 0 ? { steps } : {}), from, loop });
  }

  /** The innermost loop of a function that a line is in. */
  loopAt(called, at) {
    return this.nests[called].findLast((nest) => nest[4] <= at && at <= nest[5]) ?? null;
  }

  /** Whether a line, or a loop, of a function lights up. */
  isLit(called, first, last) {
    if (called === null || !this.lit.has(called)) return false;
    const { loop } = selected;
    if (!loop || loop.target !== this.number) return true;
    return loop.called === called && loop.nest[4] <= first && last <= loop.nest[5];
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
      if (called !== null) target().choose(called, target().loopAt(called, at), "c");
    },
    lit: (n) => target().isLit(lines()[n].called, lines()[n].at, lines()[n].at),
    first: () => {
      const { loop } = selected;
      const start = loop?.target === selected.target ? loop.nest[4] : 0;
      const starts = [...target().lit].map((called) => target().firstOf.get(called) + start);
      return starts.length ? Math.min(...starts) : -1;
    },
  }));
}

/** The loops of all kernels of the target: what they run over, who shares them, what they read. */
function loopLines() {
  const loops = () => target().loops;
  const isLit = ({ called, nest }) => target().isLit(called, nest ? nest[4] : -1, nest ? nest[5] : Infinity);
  return withTargets(new Lines("Loops", {
    count: () => loops().length,
    line: (n) => {
      const row = loops()[n];
      if (!row.nest) return [part("name", row.called)];
      const [depth, variable, extent, kind, , , , calls] = row.nest;
      const arrays = target().arraysOf(row).map(([name, i]) => `${name} ${PROGRAMS[COMPILED].labels[i][0]}`);
      return [`  ${"  ".repeat(depth)}for `, part("name", variable), ` < ${extent}`,
        part("opcode", kind === "serial" ? "" : ` by ${kind}`), part("muted", `  ${[...arrays, ...calls].join(", ")}`)];
    },
    chosen: (n) => target().choose(loops()[n].called, loops()[n].nest, "loops"),
    lit: (n) => isLit(loops()[n]),
    first: () => loops().findIndex(isLit),
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
