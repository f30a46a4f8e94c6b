// The page: its header, its panels, and what changes in them when something is selected.

// What the colours of nodes show, as it is chosen.
const COLOURS = {
  family: "kind of operation", time: "time", bytes: "bytes", flops: "flops", values: "not finite", deviation: "deviation",
};

/** What the colours of the graph mean: a name for each, or the ends of a scale. */
function legendParts({ heat, scene, worst }) {
  if (heat === "family") {
    const here = new Set(scene.nodes.map((node) => scene.program.family[node.i]));
    const kinds = DATA.families.flatMap((name, n) => (here.has(n) ? [element("span", { class: `swatch family-${n}` }, name)] : []));
    const { added, changed } = scene.program;
    return added?.size || changed?.size ? [...kinds, element("span", { class: "swatch fresh" }, "new or changed")] : kinds;
  }
  const most = worst || 0;
  const text = {
    time: () => time(most), values: () => `${(100 * most).toPrecision(3)} % of its elements`,
    deviation: () => `${size(Math.expm1(most))} ulps`, bytes: () => inBytes(most), flops: () => size(most),
  }[heat]();
  return [scale("0", most ? text : "0: nothing here has any")];
}

/** The graph with its tools. */
function graphPanel() {
  const canvas = element("canvas", {
    tabindex: 0, role: "application", id: "graph",
    "aria-label": "Graph of the program: arrow keys go to operands, users and neighbours, Enter opens a node",
  });
  const picture = new Picture(canvas);
  const names = ["family", ...(DATA.kernels ? ["time"] : []), "bytes", "flops", ...(DATA.values ? ["values"] : []),
    ...(DATA.values?.judged?.inner.length || DATA.values?.judged?.nested.length ? ["deviation"] : [])];
  const heat = element("select", { "aria-label": "Colour shows", change: () => { picture.heat = heat.value; picture.worst = null; picture.ask(); } },
    ...names.map((name) => element("option", { value: name }, COLOURS[name])));
  const legend = element("div", { class: "legend muted", role: "note", "aria-label": "What the colours are" });
  picture.explain = () => legend.replaceChildren(...legendParts(picture));
  const tool = (label, text, act) => element("button", { "aria-label": label, title: label, click: act }, text);
  const root = element("div", { class: "column" },
    element("div", { class: "bar-of-tools" },
      tool("Zoom in", "+", () => picture.zoom(1.3)), tool("Zoom out", "−", () => picture.zoom(0.77)),
      tool("Show all", "⤢", () => picture.fit()), tool("Open or close all", "⊞", () => picture.toggleAll()),
      element("label", {}, "Colour: ", heat)),
    legend, canvas);
  return { name: "Graph", root, picture };
}

/** A field that finds instructions by name, opcode, shape or operation. */
function searchField() {
  const list = element("ul", { role: "listbox", id: "found", "aria-label": "Instructions found", hidden: true });
  let found = [], current = 0;
  const choose = (i) => { list.hidden = true; field.setAttribute("aria-expanded", "false"); selected.choose([i], { from: "search" }); };
  const draw = () => {
    list.replaceChildren(...found.map((i, n) => element("li", {
      role: "option", id: `found-${n}`, "aria-selected": n === current ? "true" : "false", pointerdown: (event) => { event.preventDefault(); choose(i); },
    }, part("name", selected.program.labels[i][0]), " ", part("muted", `${selected.program.opcode[i]} ${selected.program.shape[i].slice(0, 40)}`))));
    list.hidden = !found.length;
    field.setAttribute("aria-expanded", found.length ? "true" : "false");
    if (found.length) field.setAttribute("aria-activedescendant", `found-${current}`);
    else field.removeAttribute("aria-activedescendant");
  };
  const field = element("input", {
    type: "search", role: "combobox", placeholder: "Search: name, opcode, shape  ( / )", "aria-label": "Search instructions",
    "aria-controls": "found", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
    input: () => { found = search(field.value); current = 0; draw(); },
    blur: () => { list.hidden = true; },
    keydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length) { current = (current + step + found.length) % found.length; draw(); event.preventDefault(); }
      if (event.key === "Enter" && found.length) choose(found[current]);
      if (event.key === "Escape") { found = []; draw(); }
    },
  });
  return [field, element("div", { class: "search" }, field, list)];
}

/** Instructions in which each word of a text is found, those whose name is the text first. */
function search(text) {
  const words = text.toLowerCase().replace(/%/g, "").split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const program = selected.program, ranked = [];
  for (let i = 0; i < program.count && ranked.length < 400; i++) {
    const name = program.name[i].toLowerCase();
    const whole = `${name} ${program.opcode[i]} ${program.shape[i]} ${program.operation[i]}`.toLowerCase();
    if (words.every((word) => whole.includes(word))) {
      ranked.push([name === words[0] ? 0 : name.startsWith(words[0]) ? 1 : 2, i]);
    }
  }
  return ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, 12).map(([, i]) => i);
}

const graph = graphPanel();
const picture = graph.picture;
const hloList = hloLines(), source = sourceLines(), c = DATA.kernels ? cLines() : null, loops = DATA.kernels ? loopLines() : null;
const details = new Details();
const table = DATA.kernels ? new KernelTable() : null;
const treemap = DATA.kernels ? new Treemap() : null;
const workspace = DATA.kernels ? new WorkspaceChart() : null;
const verdict = DATA.values?.judged ? new VerdictPanel() : null;
const listPanel = (name, list) => list && { name, root: list.root, update: () => { list.refresh(); list.reveal(); } };
const hasSource = PROGRAMS.some((program) => program.places.length);
const panels = [
  new Tabs("Text", [listPanel("HLO", hloList), hasSource && listPanel("Source", source)]),
  new Tabs("Picture", [
    graph,
    table && { name: "Kernels", root: table.root, update: () => { if (!table.root.firstChild) table.draw(); table.light(true); } },
    treemap && { name: "Time", root: treemap.root, update: () => { if (!treemap.body.firstChild) treemap.draw(); treemap.light(); } },
    DATA.values?.judged && { name: "Verdict", root: verdict.root, update: () => verdict.draw() },
    workspace && { name: "Memory", root: workspace.root, update: () => { if (!workspace.body.firstChild) workspace.draw(); workspace.light(); } },
  ]),
  new Tabs("Selection", [{ name: "Details", root: details.root, update: () => details.draw() }, listPanel("Loops", loops), listPanel("C", c)]),
];

function header() {
  const [field, searching] = searchField();
  const views = element("select", { "aria-label": "Stage of the program", id: "view", change: () => selected.show(Number(views.value)) },
    ...DATA.views.map((view, n) => element("option", { value: n, selected: n === selected.view }, view.title)));
  selected.listeners.push(() => { views.value = String(selected.view); });
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); field.focus(); }
  });
  document.querySelector("header").append(
    element("h1", { title: DATA.title }, DATA.title), backButton(), searching,
    ...(DATA.views.length > 1 && !DATA.slider ? [element("label", {}, part("wide", "Stage: "), views)] : []), themeButton(() => picture.ask()));
}

header();
if (DATA.slider) document.querySelector("header").after(stageSlider());
if (DATA.slider && selected.program.marked?.size) selected.choose([...selected.program.marked]);
document.querySelector("main").append(...panels.map((panel) => panel.root));
selected.listeners.push(() => { for (const panel of panels) panel.update(); });
for (const panel of panels) panel.update();
if (selected.instruction < 0) hloList.show(selected.program.lines.findIndex((line) => String(line).startsWith("ENTRY ")));
// For tests and for measuring: what is shown, and how to reach it.
window.page = { selected, picture, programs: PROGRAMS, opened: performance.now() };
