// The programs of the page, what follows from them, and what is selected.

/** A program as a view has it: its instructions by number, their users, its lines of text. */
class Program {
  constructor(view) {
    this.view = view;
    const columns = view.instructions;
    Object.assign(this, columns);
    this.count = columns.name.length;
    this.users = Array.from({ length: this.count }, () => []);
    columns.operands.forEach((operands, user) => {
      for (const operand of new Set(operands)) this.users[operand].push(user);
    });
    this.lines = []; // the number of an instruction, or text
    this.lineOf = new Int32Array(this.count);
    this.computationOf = new Int32Array(this.count);
    this.roots = new Set();
    this.byName = new Map(); // and by computation and name
    let first = 0;
    view.computations.forEach(({ name, count, root, entry }, number) => {
      this.lines.push(`${entry ? "ENTRY " : ""}${name} {`);
      this.roots.add(first + root);
      for (let i = first; i < first + count; i++) {
        this.lineOf[i] = this.lines.length;
        this.computationOf[i] = number;
        this.lines.push(i);
        this.byName.set(columns.name[i], i);
        this.byName.set(`${name}\0${columns.name[i]}`, i);
      }
      first += count;
      this.lines.push("}", "");
    });
    this.byPlace = columns.places.map(() => []);
    columns.place.forEach((place, i) => place >= 0 && this.byPlace[place].push(i));
  }

  /** The graph nodes of each instruction: [graph, node], outside of kernels first. */
  get nodes() {
    if (!this.found) {
      this.found = Array.from({ length: this.count }, () => []);
      this.view.graphs.forEach((graph, number) =>
        graph.instruction.forEach((i, node) => this.found[i].push([number, node])));
      for (const places of this.found) places.reverse();
    }
    return this.found;
  }

  /** The instruction that another program has under the name of this one's; -1 if none. */
  in(other, i) {
    const computation = this.view.computations[this.computationOf[i]].name;
    return other.named(computation, this.name[i]);
  }

  /** The instruction of a name in a computation; -1 if that has none. */
  at(computation, name) {
    return this.byName.get(`${computation}\0${name}`) ?? -1;
  }

  /** The instruction of a name, in a computation if that has it. */
  named(computation, name) {
    return this.byName.get(`${computation}\0${name}`) ?? this.byName.get(name) ?? -1;
  }

  line(i) {
    const root = this.roots.has(i) ? "ROOT " : "";
    return `${root}${this.name[i]} = ${this.shape[i]} ${this.opcode[i]}${this.rest[i]}`;
  }
}

const PROGRAMS = DATA.views.map((view) => new Program(view));
/** The steps of the compiled program, and which of them compute each of its instructions. */
const STEPS = DATA.kernels ? DATA.kernels.rows : [];
const COMPILED = DATA.compiled ?? -1; // the view whose instructions the steps name
const STEPS_OF = new Map();
STEPS.forEach((row, number) => {
  for (const i of new Set([...row.members, row.instruction])) {
    if (!STEPS_OF.has(i)) STEPS_OF.set(i, []);
    STEPS_OF.get(i).push(number);
  }
});

/** What is selected: ``instruction`` of the view that is shown, and all that lights up with it. */
const selected = {
  view: DATA.first ?? 0,
  instruction: -1,
  instructions: new Set(),
  steps: new Set(),
  whole: true, // whether kernels are selected, not only what computes the instructions in them
  places: new Set(),
  path: new Set(),
  loop: null, // of the C of a target: { target, called, nest }
  target: 0, // of those that C is shown of
  listeners: [],
  get program() { return PROGRAMS[this.view]; },
  get compiled() { return this.view === COMPILED; },

  /** Select instructions, the last of them first of all, and the steps that compute them. */
  choose(instructions, { steps = null, whole = steps !== null, from = "", path = [], loop = null } = {}) {
    this.instructions = new Set(instructions);
    this.instruction = instructions.length ? instructions[instructions.length - 1] : -1;
    const linked = instructions.flatMap((i) => STEPS_OF.get(this.inCompiled(i)) ?? []);
    this.steps = new Set(steps ?? linked);
    this.places = new Set(instructions.map((i) => this.program.place[i]).filter((p) => p >= 0));
    this.path = new Set(path);
    this.loop = loop;
    this.whole = whole;
    for (const listener of this.listeners) listener(from);
  },

  /** Select a step: what it computes. */
  step(number, from) {
    const { members, instruction } = STEPS[number];
    const wanted = [...members.filter((i) => i !== instruction), instruction].filter((i) => i >= 0);
    this.choose(wanted.map((i) => this.fromCompiled(i)).filter((i) => i >= 0), { steps: [number], from });
  },

  /** Show the C of another target; what is selected stays so. */
  aim(number) {
    this.target = number;
    this.loop = null;
    for (const listener of this.listeners) listener("target");
  },

  /** The instruction of the compiled view that has the name of one of the view that is shown. */
  inCompiled(i) {
    if (this.compiled || COMPILED < 0 || i < 0) return COMPILED < 0 ? -1 : i;
    return this.program.in(PROGRAMS[COMPILED], i);
  },

  fromCompiled(i) {
    if (this.compiled || i < 0) return i;
    return PROGRAMS[COMPILED].in(this.program, i);
  },

  /** Show another view; what has the same name there stays selected. */
  show(view) {
    const before = this.program;
    this.view = view;
    const kept = [...this.instructions].map((i) => before.in(this.program, i)).filter((i) => i >= 0);
    this.choose(kept, { from: "view" });
  },
};

/** A shortest path along operands and users, from one instruction to another; empty if none. */
function pathBetween(program, from, to) {
  for (const [start, end] of [[from, to], [to, from]]) {
    const before = new Map([[start, -1]]);
    const waiting = [start];
    for (let n = 0; n < waiting.length && !before.has(end); n++) {
      for (const user of program.users[waiting[n]]) {
        if (!before.has(user)) {
          before.set(user, waiting[n]);
          waiting.push(user);
        }
      }
    }
    if (before.has(end)) {
      const path = [];
      for (let i = end; i >= 0; i = before.get(i)) path.push(i);
      return path.reverse();
    }
  }
  return [];
}
