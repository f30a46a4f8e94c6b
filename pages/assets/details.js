// What is known of the instruction and the kernel that are selected; what the pointer is over.

/** A button that selects an instruction. */
function link(i) {
  return element("button", { class: "link", click: () => selected.choose([i], { from: "details" }) },
    selected.program.name[i]);
}

function links(numbers) {
  const most = 24;
  const shown = numbers.slice(0, most).map(link);
  return numbers.length > most ? [...shown, ` and ${numbers.length - most} more`] : shown;
}

function stepLink(number) {
  const { kind } = STEPS[number];
  return element("button", { class: "link", click: () => selected.step(number, "details") }, `#${number} ${kind}`);
}

/** The lines of C that compute what is selected, as text. */
function linesOfC() {
  const found = TARGETS.length ? [...target().lit].filter(([, own]) => own) : [];
  return found.map(([called, { lines }]) =>
    `${lines.size === 1 ? "a line" : `${lines.size} lines`} of ${called}, ${target().name}`).join("; ");
}

class Details {
  constructor() {
    this.root = element("div", { class: "details", "aria-label": "Details", role: "region", tabindex: 0 });
    this.pinned = -1;
  }

  draw() {
    const program = selected.program, i = selected.instruction;
    if (i < 0 && !selected.steps.size) {
      this.root.replaceChildren(this.introduction());
      return;
    }
    const parts = [];
    if (selected.path.size) parts.push(this.path());
    if (selected.loop) parts.push(this.loop(selected.loop));
    if (i >= 0) parts.push(this.instruction(program, i));
    for (const number of [...selected.steps].slice(0, 6)) parts.push(this.step(number));
    this.root.replaceChildren(...parts);
  }

  introduction() {
    const program = selected.program;
    const memory = DATA.kernels?.memory;
    return element("section", {},
      element("h2", {}, program.view.name),
      facts([
        ["instructions", program.count], ["computations", program.view.computations.length],
        ["kernels", DATA.kernels && STEPS.filter((row) => row.timed).length],
        ["numerics", DATA.kernels?.numerics], ["threads", DATA.kernels?.threads],
        ["time of a call", DATA.kernels?.seconds && time(DATA.kernels.seconds)],
        ["workspace", memory && inBytes(memory.workspace)], ["memory in all", memory && inBytes(memory.peak)],
      ]),
      element("p", { class: "muted" }, "Click an instruction, a line or a kernel: what belongs to it lights up. " +
        "Double click, or Enter, opens a node. Shift and click a second one shows the path between them. " +
        "Arrow keys go to operands, users and neighbours; + − 0 zoom. Escape selects nothing, Backspace goes back."));
  }

  instruction(program, i) {
    const pinned = this.pinned;
    const actions = element("p", { class: "actions" },
      element("button", { click: () => { this.pinned = i; say(`path begins at ${program.name[i]}`); this.draw(); } }, "Path from here"),
      ...(pinned >= 0 && pinned !== i && pinned < program.count
        ? [element("button", { click: () => showPath(pinned, i, "details") }, `Path from ${program.labels[pinned][0]}`)] : []));
    const noSteps = DATA.kernels && selected.compiled && !STEPS_OF.has(i);
    return element("section", {},
      element("h2", {}, program.name[i]),
      facts([
        ["opcode", program.opcode[i]], ["shape", program.shape[i]], ["bytes", size(program.bytes[i])],
        ["flops", size(program.flops[i])],
        ["flops / byte", program.flops[i] && program.bytes[i] ? (program.flops[i] / program.bytes[i]).toPrecision(3) : ""],
        ["operands", program.operands[i].length ? links([...new Set(program.operands[i])]) : ""],
        ["users", program.users[i].length ? links(program.users[i]) : ""],
        ["computation", program.view.computations[program.computationOf[i]].name],
        ["source", program.place[i] >= 0 ? program.places[program.place[i]] : ""],
        ["operation", program.operation[i]],
        ["kernel", noSteps ? "none: it takes no time" : ""],
        ["computed on", selected.whole || selected.instructions.size > 1 ? "" : linesOfC()],
      ]),
      ...valueParts(program, i), actions);
  }

  /** A loop of the C: who shares its iterations, what it reads and calls. */
  loop(loop) {
    const owner = TARGETS[loop.target], [, , extent, kind, , , , calls] = loop.nest;
    const arrays = owner.arraysOf(loop).map(([name, i]) => [name, selected.fromCompiled(i)]).filter(([, i]) => i >= 0);
    return element("section", {},
      element("h2", {}, loopHead(loop.nest), part("muted", ` ${loop.called}`)),
      facts([["target", owner.name], ["iterations", extent], ["shared by", kind === "serial" ? "nobody" : kind],
        ["arrays", arrays.flatMap(([name, i]) => [`${name} `, link(i)])], ["calls", calls.join(", ")]]));
  }

  step(number) {
    const row = STEPS[number];
    const edges = DATA.kernels.edges;
    const after = edges.filter((edge) => edge[0] === number);
    const before = edges.filter((edge) => edge[1] === number);
    const of = (i) => (i < 0 ? "" : PROGRAMS[COMPILED].name[i]);
    const intensity = row.flops && row.read + row.written ? row.flops / (row.read + row.written) : 0;
    const limit = row.measured ? row.predicted / row.measured : 0;
    return element("section", { class: "step" },
      element("h2", {}, `#${number} ${row.kind}`, part("muted", ` ${row.function}`)),
      facts([
        ["result", row.shapes.join(" ")],
        ["computes", row.members.length ? links(row.members.map((i) => selected.fromCompiled(i)).filter((i) => i >= 0)) : ""],
        ["repeated", row.repeated.map(([i, times]) => `${of(i)} ×${times.toPrecision(3)}`).join(", ")],
        ["read", row.timed ? inBytes(row.read) : ""], ["written", row.timed ? inBytes(row.written) : ""],
        ["flops", row.flops ? size(row.flops) : ""], ["flops / byte", intensity ? intensity.toPrecision(3) : ""],
        ["limit", row.timed ? row.limit : ""], ["runs", row.runs > 1 ? row.runs : ""],
        ["least time", row.timed ? time(row.predicted) : ""],
        ["measured", row.measured !== null ? time(row.measured) : ""],
        ["of the limit", limit ? [bar(limit, `${Math.round(100 * limit)} %`)] : ""],
        ["share of time", row.share !== null ? [bar(row.share, `${(100 * row.share).toPrecision(3)} %`)] : ""],
        ["calls", row.calls.join(", ")],
        ["stored, because", row.why],
        ["reads from", before.length ? before.map(([producer]) => stepLink(producer)) : ""],
        ["read by", after.length ? after.map((edge) => stepLink(edge[1])) : ""],
      ]));
  }

  path() {
    const path = [...selected.path], program = selected.program;
    const [from, to] = [path[0], path[path.length - 1]];
    return element("section", {}, element("h2", {}, "Path"),
      element("p", {}, ...path.flatMap((i, n) => (n ? [" → ", link(i)] : [link(i)]))),
      ...(selected.compiled ? [element("p", { class: "why" }, whyApart(program, from, to))] : []));
  }
}

/** Say why two instructions are computed by one kernel, or by several. */
function whyApart(program, from, to) {
  const first = STEPS_OF.get(from) ?? [], second = STEPS_OF.get(to) ?? [];
  const both = first.filter((step) => second.includes(step));
  if (both.length) return `Both are computed in kernel #${both.join(", #")}.`;
  const edges = DATA.kernels.edges.filter(([p, c]) => first.includes(p) && second.includes(c));
  if (edges.length) return `Not fused: ${edges[0][3]}.`;
  const between = [...selected.path].flatMap((i) => STEPS_OF.get(i) ?? []);
  const reasons = DATA.kernels.edges
    .filter(([p, c]) => between.includes(p) && between.includes(c) && p !== c)
    .map(([p, c, , why]) => `#${p} → #${c}: ${why}`);
  return reasons.length ? `Not fused: ${[...new Set(reasons)].slice(0, 5).join("; ")}.` : "No kernel computes one of them.";
}

/** Select the path between two instructions. */
function showPath(from, to, origin) {
  const path = pathBetween(selected.program, from, to);
  if (!path.length) {
    say(`no path between ${selected.program.name[from]} and ${selected.program.name[to]}`);
    selected.choose([from, to], { from: origin });
    return;
  }
  selected.choose([from, to], { from: origin, path });
  say(`a path of ${path.length} instructions`);
}

/** Show what the pointer is over. */
function hover(node, x = 0, y = 0) {
  const box = document.getElementById("hover");
  box.hidden = !node;
  if (!node) return;
  const program = selected.program;
  const step = selected.compiled && node.kernel >= 0 ? STEPS[node.kernel] : null;
  const cut = (text) => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
  const lines = [
    part("name", cut(program.name[node.i])), part("opcode", program.opcode[node.i]),
    part("shape", cut(program.shape[node.i])),
    part("muted", `${inBytes(program.bytes[node.i])}, ${size(program.flops[node.i])} flops`),
  ];
  if (step && step.timed) {
    const taken = step.measured === null ? `at least ${time(step.predicted)}` : time(step.measured);
    lines.push(part("muted", `kernel #${node.kernel}: ${step.members.length} instructions, ${taken}, limit ${step.limit}`));
  }
  box.replaceChildren(...lines);
  box.style.left = `${Math.min(x + 14, window.innerWidth - Math.min(420, box.offsetWidth) - 8)}px`;
  box.style.top = `${y + 18 + box.offsetHeight > window.innerHeight ? y - box.offsetHeight - 8 : y + 18}px`;
}
