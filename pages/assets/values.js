// What each instruction gave in an exact run, and how far another compiler's results are off.

/** Link the summaries of values, and the verdict, to the instructions of all views by name. */
function linkValues() {
  if (!DATA.values) return;
  const wrong = new Set(DATA.values.judged?.wrong ?? []);
  for (const program of PROGRAMS) {
    program.summaries = new Map();
    program.suspicion = new Float64Array(program.count);
    program.marked = new Set();
    for (const { computation, name, arrays } of DATA.values.observed) {
      const i = program.named(computation, name);
      if (i < 0) continue;
      const same = program.view.computations[program.computationOf[i]].name === computation;
      if (program.summaries.has(i) && !same) continue;
      program.summaries.set(i, arrays);
      program.suspicion[i] = Math.max(0, ...arrays.map(({ counts, elements }) =>
        ((counts.NaN ?? 0) + (counts.infinite ?? 0)) / Math.max(1, elements)));
    }
    linkInner(program);
    for (const name of wrong) {
      const i = program.byName.get(name);
      if (i !== undefined) program.marked.add(i);
    }
  }
}

/** Link a compiler's values of instructions: what is outside is marked. */
function linkInner(program) {
  program.inner = new Map();
  program.deviation = new Float64Array(program.count);
  const entry = program.view.computations.find((computation) => computation.entry).name;
  for (const one of DATA.values.judged?.inner ?? []) {
    const i = program.byName.get(`${entry}\0${one.place}`);
    if (i === undefined) continue;
    program.inner.set(i, one);
    program.deviation[i] = Math.log1p(Math.min(one.largest, 1e9));
    if (one.counts.outside) program.marked.add(i);
  }
  program.nested = new Map();
  for (const one of DATA.values.judged?.nested ?? []) {
    const i = program.at(one.computation, one.place);
    if (i < 0) continue;
    program.nested.set(i, one);
    program.deviation[i] = Math.log1p(Math.min(one.largest, 1e9));
    if (one.counts.outside) program.marked.add(i);
  }
}
linkValues();

function shown(number) {
  if (number === null) return "none finite";
  return Number.isSafeInteger(number) ? String(number) : String(Number(number.toPrecision(6)));
}

/** A histogram as bars. */
function histogram({ bins, low, high }) {
  const width = 256, height = 56, most = Math.max(1, ...bins), each = width / Math.max(1, bins.length);
  const text = `${bins.length} bins from ${shown(low)} to ${shown(high)}, at most ${grouped(most)} elements in one`;
  return drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "histogram", role: "img", "aria-label": text },
    drawn("title", {}, text),
    ...bins.map((count, n) => {
      const tall = count ? Math.max(1, (count / most) * (height - 2)) : 0;
      return drawn("rect", { x: n * each + 0.5, y: height - tall, width: Math.max(0.5, each - 1), height: tall });
    }));
}

/** The smallest to the largest element in each evaluation; those with other than finite ones are red. */
function rangeChart({ ranges, runs, low, high }) {
  const width = 256, height = 72, each = width / ranges.length, bottom = Math.min(low ?? 0, 0), top = Math.max(high ?? 0, 0);
  const y = (value) => 2 + (height - 4) * (top === bottom ? 0.5 : (top / 2 - value / 2) / (top / 2 - bottom / 2));
  const text = `from the smallest to the largest element in ${ranges.length === runs ? "each" : ranges.length} of ${grouped(runs)} evaluations, ${shown(bottom)} to ${shown(top)}`;
  return drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "range-chart", role: "img", "aria-label": text },
    drawn("line", { x1: 0, x2: width, y1: y(0), y2: y(0), class: "grid" }),
    ...ranges.map(([number, least, most, special], n) => {
      const from = most === null ? 0 : y(most), to = least === null ? height : y(least);
      return drawn("rect", { x: n * each, y: from - 1, width: Math.max(0.5, each - (each > 3 ? 1 : 0)), height: to - from + 2, class: special ? "special" : "" },
        drawn("title", {}, `evaluation ${number + 1}: ${shown(least)} to ${shown(most)}${special ? `, ${grouped(special)} not finite` : ""}`));
    }));
}

/** One evaluation of several: which, its range, and its histogram. */
function evaluation(names, [number, low, high, special, bins], runs) {
  const range = low === high ? shown(low) : `${shown(low)} to ${shown(high)}`;
  return element("figure", {},
    element("figcaption", {}, part("strong", names.join(", ")), ` (${grouped(number + 1)} of ${grouped(runs)}): ${range}`,
      ...(special ? [part("bad", `, ${grouped(special)} not finite`)] : [])),
    ...(bins.length > 1 ? [histogram({ bins, low, high })] : []));
}

/** What an array of an instruction was in all of its evaluations, and in some of them. */
function arrayParts(array) {
  const { runs, kept } = array, named = new Map();
  for (const [name, ...rest] of kept) {
    if (!named.has(rest[0])) named.set(rest[0], [[], rest]);
    // The worst one has the most that is not finite, or else the largest number.
    named.get(rest[0])[0].push(name === "worst" && !rest[3] ? "largest" : name);
  }
  const single = kept.length ? kept[0].slice(1) : null;
  return [
    element("h3", {}, `Values${array.place ? ` of ${array.place}` : ""}`),
    facts([
      ["evaluated", runs > 1 ? `${grouped(runs)} times` : ""], ["elements", grouped(array.elements)],
      ["from", shown(array.low)], ["to", shown(array.high)],
      ...["NaN", "infinite", "subnormal", "zero"].map((kind) => [kind, array.counts[kind] ? grouped(array.counts[kind]) : ""]),
    ]),
    ...(runs > 1 ? [rangeChart(array), ...[...named.values()].map(([names, rest]) => evaluation(names, rest, runs))]
      : single && single[4].length > 1 ? [histogram({ low: single[1], high: single[2], bins: single[4] })] : []),
  ];
}

/** Why an instruction has no values on a page that has values. */
function whyNoValues(program, i) {
  const name = program.view.computations[program.computationOf[i]].name;
  return DATA.values.applied.includes(name)
    ? `None: ${name} is applied to single elements, as a part of the instruction that calls it.`
    : "None: nothing that was evaluated needs it, or its branch was not taken, or another stage has it under another name.";
}

/** What the values of an instruction were, and another compiler's; of a page without, nothing. */
function valueParts(program, i) {
  if (!DATA.values) return [];
  const most = 6, arrays = program.summaries.get(i) ?? [];
  if (!arrays.length) return [element("h3", {}, "Values"), element("p", { class: "muted" }, whyNoValues(program, i))];
  return [...arrays.slice(0, most).flatMap(arrayParts), ...deviationParts(program.inner.get(i)), ...nestedParts(program.nested.get(i))];
}

/** The elements of an array by verdict, as text. */
function verdictText(counts) {
  return Object.entries(counts).filter(([, number]) => number).map(([kind, number]) => `${grouped(number)} ${kind}`).join(", ");
}

/** The largest deviation of an array, as text. */
function deviationText(largest) {
  return largest ? `at most ${largest >= 1e30 ? "infinite" : size(largest)} ulps` : "none";
}

/** How far another compiler's value of an instruction is off. */
function deviationParts(inner) {
  if (!inner) return [];
  const { counts, largest, cells, outside, first } = inner, text = deviationText(largest);
  return [element("h3", {}, `Value of ${DATA.values.judged.peer}`),
    facts([["elements", verdictText(counts)], ["deviation", text], ["first outside", first?.length ? `[${first}]` : ""]]),
    ...(cells ? [heatMap(cells, outside, text)] : [])];
}

/** Which of several evaluations one is, by the trips of the loops around it where it is in any. */
function evaluationText({ evaluation, trips }, count) {
  const numbers = trips.map((n) => grouped(n + 1)).join(", ");
  if (trips.length) return trips.length === 1 ? `trip ${numbers}` : `trips ${numbers} of the loops around it, outermost first`;
  return count > 1 ? `evaluation ${grouped(evaluation + 1)} of ${grouped(count)}` : "its only evaluation";
}

/** How another compiler's values of an instruction in a loop, a branch or a call were judged, evaluation by evaluation. */
function nestedParts(one) {
  if (!one) return [];
  const { evaluations, elsewhere, is_column, first, first_outside, counts, largest, cells, outside } = one, text = deviationText(largest);
  const order = `Evaluations from ${is_column ? "top to bottom" : "left to right"}, beside those of the exact run. Each is judged from what ${DATA.values.judged.peer}'s loops carried before its trip.`;
  return [element("h3", {}, `Value of ${DATA.values.judged.peer}`),
    facts([["evaluated", evaluations > 1 ? `${grouped(evaluations)} times` : "once"], ["elsewhere in the exact run", elsewhere ? `${grouped(elsewhere)} times` : ""],
      ["elements", verdictText(counts)], ["deviation", text],
      ["begins in", first ? evaluationText(first, evaluations) : ""], ["first outside", first_outside ? evaluationText(first_outside, evaluations) : ""]]),
    ...(cells ? [heatMap(cells, outside, text), element("p", { class: "muted" }, order)] : [])];
}

/** The verdict on another compiler's results: evidence, and deviations as heat maps. */
class VerdictPanel {
  constructor() {
    this.root = element("div", { class: "details", tabindex: 0, role: "region", "aria-label": "Verdict" });
  }

  draw() {
    const { peer, evidence, outputs, wrong, first } = DATA.values.judged;
    const parts = [element("section", {}, element("h2", {}, `Results of ${peer}`),
      ...(evidence.length ? evidence.map((line) => element("p", { class: "evidence" }, line)) : [element("p", { class: "muted" }, "Nothing is proven wrong of them.")]),
      ...(wrong.length ? [element("p", {}, "Steps that nothing legal takes: ", ...wrong.map((name) => this.step(name)))] : []))];
    if (first) parts.push(this.first(first));
    for (const output of outputs) parts.push(this.output(output));
    this.root.replaceChildren(...parts);
  }

  step(name) {
    const i = selected.program.byName.get(name);
    return i === undefined ? name : link(i);
  }

  /** The first wrong value inside of others, in the program as written if the one that is shown has it under another name. */
  first({ computation, place, trips, evidence }) {
    const view = [selected.view, 0].find((n) => PROGRAMS[n].at(computation, place) >= 0);
    const choose = () => {
      if (view !== selected.view) selected.show(view);
      selected.choose([PROGRAMS[view].at(computation, place)], { from: "verdict" });
    };
    const where = trips.length ? `, ${evaluationText({ trips }, 1)}` : "";
    return element("section", {}, element("h2", {}, "In loops, branches and calls"),
      element("p", {}, "The first value that nothing legal gives: ",
        view === undefined ? place : element("button", { class: "link", click: choose }, place), ` of ${computation}${where}.`),
      element("p", { class: "evidence" }, evidence));
  }

  output({ place, shape, counts, largest, cells, outside, first }) {
    const text = deviationText(largest);
    return element("section", {}, element("h2", {}, place || "result"),
      facts([["shape", shape.length ? `[${shape}]` : "a single number"], ["elements", verdictText(counts)], ["deviation", text],
        ["first outside", first?.length ? `[${first}]` : ""]]),
      ...(largest && shape.length ? [heatMap(cells, outside, text)] : []));
  }
}

/** A map with its scale, which says what colours mean. */
function heatMap(cells, outside, text) {
  const most = Math.max(0, ...cells.flat());
  const framed = outside.some((row) => row.includes(1)) ? "; framed in red: outside of what is legal" : "";
  return element("figure", {}, heatCells(cells, outside, text),
    element("figcaption", { class: "muted" }, "The largest deviation in each cell: ", scale("0", most >= 1e30 ? "infinite" : `${size(most)} ulps`), ` (logarithmic)${framed}`));
}

/** The colours of a scale, between its ends. */
function scale(from, to) {
  return element("span", { class: "scale" }, `${from} `, element("span", { class: "gradient", role: "img", "aria-label": "to" }), ` ${to}`);
}

/** The largest deviation in each cell, on a logarithmic scale; what is outside is framed. */
function heatCells(cells, outside, text) {
  const columns = cells[0].length, edge = Math.max(4, Math.min(22, Math.floor(420 / columns)));
  const most = Math.max(1, ...cells.flat());
  const map = drawn("svg", {
    width: columns * edge, height: cells.length * edge, viewBox: `0 0 ${columns * edge} ${cells.length * edge}`,
    class: "heat-map", role: "img", "aria-label": `${cells.length} × ${columns} cells: ${text}`,
  });
  cells.forEach((row, y) => row.forEach((ulps, x) => {
    const part = Math.log1p(ulps) / Math.log1p(most);
    const cell = drawn("rect", { x: x * edge, y: y * edge, width: edge - 0.5, height: edge - 0.5, class: outside[y][x] ? "outside" : "" },
      drawn("title", {}, `${ulps >= 1e30 ? "infinite" : size(ulps)} ulps${outside[y][x] ? ", outside" : ""}`));
    cell.style.fill = `color-mix(in oklab, var(--heat) ${Math.round(100 * part)}%, var(--edge))`;
    map.append(cell);
  }));
  return map;
}
