// The table of kernels, the treemap of time, and the workspace over time.

// Name, value of a row, its text, what it is. Of a narrow table the first ones are in view.
const COLUMNS = [
  ["#", (row, n) => n, String, "number in the order of execution"],
  ["kernel", (row) => row.kind, String, "how it is written: a map, rows, an operation of its own"],
  ["share", (row) => row.share, (share) => `${(100 * share).toFixed(1)} %`, "of the time of a call"],
  ["time", (row) => row.measured, time, "all runs of it, measured"],
  ["least", (row) => row.predicted, time, "what this machine needs at least"],
  ["limit", (row) => row.limit, String, "what bounds the least time: memory, arithmetic, latency"],
  ["result", (row) => row.shapes.join(" "), (text) => (text.length > 44 ? `${text.slice(0, 44)}…` : text), "its shape"],
  ["read", (row) => row.read, size, "bytes of one run"], ["written", (row) => row.written, size, "bytes of one run"],
  ["flops", (row) => row.flops, size, "operations of one run"],
];
const TEXTS = ["kernel", "limit", "result"]; // columns of words, which begin at their left
const OF_KERNELS = ["read", "written", "flops", "limit", "least"];

class KernelTable {
  constructor() {
    this.order = 0;
    this.down = false;
    this.root = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Kernels" });
    this.columns = COLUMNS.filter(([name]) => DATA.kernels.seconds !== null || !["time", "share"].includes(name));
  }

  draw() {
    const [, value] = this.columns[this.order];
    const sign = this.down ? -1 : 1;
    const rows = STEPS.map((row, n) => n).sort((a, b) => {
      const [x, y] = [value(STEPS[a], a), value(STEPS[b], b)];
      return (x === y ? a - b : x > y ? 1 : -1) * sign;
    });
    const heads = this.columns.map(([name, , , what], n) => element("th", {
      scope: "col", title: what, class: TEXTS.includes(name) ? "text" : "", "aria-sort": n === this.order ? (this.down ? "descending" : "ascending") : undefined,
    }, element("button", { click: () => this.sort(n) }, name)));
    this.root.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows.map((n) => this.row(n)))));
    this.light();
  }

  row(number) {
    const row = STEPS[number];
    const cells = this.columns.map(([name, value, text]) => {
      const found = value(row, number);
      const empty = found === null || (!row.timed && OF_KERNELS.includes(name));
      const cell = element("td", { class: TEXTS.includes(name) ? "text" : "" }, empty ? "" : text(found));
      if (name === "kernel") cell.style.paddingLeft = `${8 + 12 * row.depth}px`;
      return cell;
    });
    const choose = () => selected.step(number, "table");
    return element("tr", {
      tabindex: 0, "data-step": number, click: choose,
      keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } },
    }, ...cells);
  }

  sort(column) {
    this.down = this.order === column ? !this.down : column && !TEXTS.includes(this.columns[column][0]);
    this.order = column;
    this.draw();
  }

  light(reveal = false) {
    let first = null;
    for (const row of this.root.querySelectorAll("tr[data-step]")) {
      const lit = selected.steps.has(Number(row.dataset.step));
      row.classList.toggle("lit", lit);
      if (lit) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
      if (lit && !first) first = row;
    }
    if (reveal && first) first.scrollIntoView({ block: "nearest" });
  }
}

/** Divide a rectangle by weights, largest first, into parts that are as square as can be (Bruls,
 * Huizing and van Wijk, "Squarified treemaps", 2000). */
function squarified(weights, x, y, width, height) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const areas = weights.map((weight) => (weight / total) * width * height);
  const found = [];
  let begin = 0;
  while (begin < areas.length) {
    const side = Math.min(width, height);
    let end = begin + 1, sum = areas[begin];
    const worst = (total, last) => Math.max((side * side * areas[begin]) / (total * total), (total * total) / (side * side * last));
    while (end < areas.length && worst(sum + areas[end], areas[end]) <= worst(sum, areas[end - 1])) sum += areas[end++];
    const thick = sum / side;
    let along = 0;
    for (let n = begin; n < end; n++) {
      const length = areas[n] / thick;
      found.push(width >= height ? [x, y + along, thick, length] : [x + along, y, length, thick]);
      along += length;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    begin = end;
  }
  return found;
}

/** The steps as parts of a whole: of the time, of the bytes. */
class Treemap {
  constructor() {
    this.body = element("div", { class: "chart" });
    this.weights = {
      time: (row) => row.measured ?? row.predicted,
      bytes: (row) => (row.read + row.written) * row.runs, flops: (row) => row.flops * row.runs,
    };
    this.choice = element("select", { "aria-label": "Area shows", change: () => this.draw() },
      ...Object.keys(this.weights).map((name) => element("option", { value: name }, name)));
    const kind = DATA.kernels.seconds === null ? "Time is the least that this machine can take: --measure times each kernel." : "";
    const legend = element("div", { class: "legend muted", role: "note", "aria-label": "What the colours are" }, "Limited by",
      ...["compute", "memory", "latency"].map((limit) => element("span", { class: `swatch limit-${limit}` }, limit)));
    this.root = element("div", { class: "column" },
      element("div", { class: "bar-of-tools" }, element("label", {}, "Area: ", this.choice), part("muted", kind)), legend, this.body);
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  draw() {
    const width = this.body.clientWidth, height = this.body.clientHeight;
    if (!width || !height) return;
    const weight = this.weights[this.choice.value];
    const steps = STEPS.map((row, n) => n).filter((n) => STEPS[n].timed && weight(STEPS[n]) > 0);
    steps.sort((a, b) => weight(STEPS[b]) - weight(STEPS[a]));
    const total = steps.reduce((sum, n) => sum + weight(STEPS[n]), 0);
    const places = squarified(steps.map((n) => weight(STEPS[n])), 0, 0, width, height);
    const picture = drawn("svg", { width, height, role: "group", "aria-label": "Share of each kernel" });
    steps.forEach((n, index) => {
      const [x, y, w, h] = places[index];
      if (w < 1.5 || h < 1.5) return;
      picture.append(this.tile(n, x, y, w, h, weight(STEPS[n]) / total));
    });
    this.body.replaceChildren(picture);
    this.light();
  }

  tile(n, x, y, w, h, share) {
    const row = STEPS[n], name = row.instruction < 0 ? "" : PROGRAMS[COMPILED].labels[row.instruction][0];
    const text = `#${n} ${row.kind} ${name}, ${(100 * share).toFixed(1)} %`;
    const tile = drawn("g", {
      tabindex: 0, role: "button", "aria-label": text, "data-step": n, class: `tile limit-${row.limit}`,
      click: () => selected.step(n, "treemap"),
      keydown: (event) => { if (event.key === "Enter") selected.step(n, "treemap"); },
    }, drawn("title", {}, text), drawn("rect", { x: x + 1, y: y + 1, width: Math.max(0.5, w - 2), height: Math.max(0.5, h - 2), rx: 4 }));
    const lines = [`#${n} ${row.kind}`, name, `${(100 * share).toFixed(1)} %`];
    lines.forEach((line, number) => {
      const fits = Math.floor((w - 14) / 7);
      if (h > 22 + 15 * number && fits > 3) {
        tile.append(drawn("text", { x: x + 8, y: y + 18 + 15 * number, class: number ? "small" : "strong" },
          line.length > fits ? `${line.slice(0, fits - 1)}…` : line));
      }
    });
    return tile;
  }

  light() {
    for (const tile of this.body.querySelectorAll("g[data-step]")) {
      tile.classList.toggle("lit", selected.steps.has(Number(tile.dataset.step)));
    }
  }
}

/** Where each array lies in the workspace, from the step that writes it to the last that reads it. */
class WorkspaceChart {
  constructor() {
    this.body = element("div", { class: "chart" });
    const memory = DATA.kernels.memory;
    const text = `Workspace: ${inBytes(memory.workspace)}; each box is an array, from left to right from the kernel that writes it (its #) to the last that reads it.`;
    this.root = element("div", { class: "column" }, element("div", { class: "bar-of-tools" }, part("muted", text)), this.body);
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  draw() {
    const width = this.body.clientWidth, height = this.body.clientHeight;
    const { lifetimes, memory } = DATA.kernels;
    if (!width || !height) return;
    if (!lifetimes.length) {
      this.body.replaceChildren(element("p", { class: "muted" }, "Nothing lies in the workspace: each array is an argument, a result or a constant."));
      return;
    }
    const left = 56, top = 10, bottom = 26;
    const end = Math.max(1, ...lifetimes.map((life) => life[4] + 1));
    const toX = (step) => left + (step / end) * (width - left - 12);
    const toY = (offset) => height - bottom - (offset / Math.max(1, memory.workspace)) * (height - top - bottom);
    const picture = drawn("svg", { width, height, role: "group", "aria-label": "Arrays of the workspace over the steps" });
    for (let n = 0; n <= 4; n++) {
      const y = toY((memory.workspace * n) / 4);
      picture.append(drawn("line", { x1: left, x2: width - 12, y1: y, y2: y, class: "grid" }),
        drawn("text", { x: left - 6, y: y + 4, class: "small end" }, inBytes((memory.workspace * n) / 4)));
      const step = Math.round((end * n) / 4);
      picture.append(drawn("text", { x: Math.min(width - 24, toX(step)), y: height - 8, class: "small" }, `#${step}`));
    }
    const largest = [...lifetimes].sort((a, b) => b[2] - a[2]).slice(0, 3000);
    for (const [i, offset, bytes, first, last] of largest) {
      const name = i < 0 ? "" : PROGRAMS[COMPILED].labels[i][0];
      const text = `${name} ${inBytes(bytes)}, steps ${first} to ${last}`;
      const y = toY(offset + bytes);
      picture.append(drawn("g", {
        tabindex: 0, role: "button", "aria-label": text, "data-i": i, class: "array",
        click: () => this.choose(i), keydown: (event) => { if (event.key === "Enter") this.choose(i); },
      }, drawn("title", {}, text), drawn("rect", {
        x: toX(first), y, width: Math.max(1.5, toX(last + 1) - toX(first) - 0.5), height: Math.max(1, toY(offset) - y - 0.5), rx: 2,
      })));
    }
    this.body.replaceChildren(picture);
    this.light();
  }

  choose(i) {
    const own = selected.fromCompiled(i);
    if (own >= 0) selected.choose([own], { from: "workspace" });
  }

  light() {
    for (const array of this.body.querySelectorAll("g[data-i]")) {
      array.classList.toggle("lit", selected.instructions.has(selected.fromCompiled(Number(array.dataset.i))));
    }
  }
}
