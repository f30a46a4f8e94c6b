// Lists of lines of which only those in view are elements.

const LINE = 20; // pixels of a line

/** A list of lines: the text of the program, of C, of Python. ``line(n)`` makes the parts of one,
 * ``chosen(n)`` acts on it, ``lit(n)`` says whether it lights up: true or "lit", or another class. */
class Lines {
  constructor(name, { count, line, chosen, lit, first }) {
    Object.assign(this, { count, line, chosen, lit, firstLit: first });
    this.body = element("div", { class: "lines" });
    this.root = element("div", {
      class: "list", role: "listbox", tabindex: 0, "aria-label": name,
      scroll: () => this.draw(), keydown: (event) => this.key(event),
    }, this.body);
    this.id = `list-${name.toLowerCase().replace(/\W+/g, "-")}`;
    this.current = -1;
    new ResizeObserver(() => this.draw(true)).observe(this.root);
  }

  refresh() {
    this.body.style.height = `${this.count() * LINE + 8}px`;
    this.draw(true);
  }

  draw(again = false) {
    const begin = Math.max(0, Math.floor(this.root.scrollTop / LINE) - 10);
    const end = Math.min(this.count(), begin + Math.ceil(this.root.clientHeight / LINE) + 20);
    if (!again && begin === this.begin && end === this.end) return;
    this.begin = begin;
    this.end = end;
    const rows = [];
    for (let n = begin; n < end; n++) {
      const found = this.lit(n), kind = found === true ? "lit" : found || "", lit = kind === "lit";
      const row = element("div", {
        id: `${this.id}-${n}`, role: "option", class: kind ? `line ${kind}` : "line",
        "aria-selected": lit ? "true" : "false", "aria-setsize": this.count(), "aria-posinset": n + 1,
        click: () => { this.current = n; this.chosen(n); },
      }, ...this.line(n));
      if (!row.textContent.trim()) row.setAttribute("aria-label", "empty line");
      row.style.top = `${n * LINE + 4}px`;
      rows.push(row);
    }
    this.body.replaceChildren(...rows);
    if (this.current >= begin && this.current < end) {
      this.root.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    } else this.root.removeAttribute("aria-activedescendant");
  }

  /** Show the first line that is lit, if none is in view. */
  reveal() {
    const first = this.firstLit();
    if (first >= 0 && this.root.clientHeight) {
      this.current = first;
      const top = first * LINE;
      const seen = this.root.scrollTop <= top && top + 2 * LINE <= this.root.scrollTop + this.root.clientHeight;
      if (!seen) this.root.scrollTop = Math.max(0, top - this.root.clientHeight / 3);
    }
    this.draw(true);
  }

  /** Show a line at the top. */
  show(line) {
    this.root.scrollTop = Math.max(0, line) * LINE;
    this.draw(true);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.root.clientHeight / LINE) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) {
      const next = this.current + steps[event.key];
      this.current = Math.max(0, Math.min(this.count() - 1, next));
      this.chosen(this.current);
    } else return;
    event.preventDefault();
  }
}

/** What a stage did with an instruction: + for a new one, ~ for one that is another now. */
function change(program, i) {
  return program.added?.has(i) ? "+ " : program.changed?.has(i) ? "~ " : "  ";
}

/** The text of the program. */
function hloLines() {
  const lines = () => selected.program.lines;
  const list = new Lines("HLO", {
    count: () => lines().length,
    line: (n) => {
      const i = lines()[n];
      if (typeof i === "string") return [part("muted", i)];
      const program = selected.program;
      const marked = program.marked && program.marked.has(i);
      return [
        part("indent", `${change(program, i)}${program.roots.has(i) ? "ROOT " : ""}`),
        part(marked ? "bad" : "name", program.name[i]), " = ",
        part("shape", program.shape[i]), " ", part("opcode", program.opcode[i]),
        part("rest", program.rest[i]),
      ];
    },
    chosen: (n) => typeof lines()[n] === "number"
      ? selected.choose([lines()[n]], { from: "hlo" }) : list.draw(true),
    lit: (n) => selected.instructions.has(lines()[n]),
    first: () => (selected.instruction < 0 ? -1 : selected.program.lineOf[selected.instruction]),
  });
  return list;
}

/** The lines of the user's own source: all of a file that came along, of others those named. */
function sourceLines() {
  let rows = [], rowOf = new Map(), shown = null;
  const make = () => {
    const program = selected.program;
    if (shown === program) return;
    shown = program;
    rows = [];
    rowOf = new Map();
    const byFile = new Map();
    program.places.forEach((place, number) => {
      const cut = place.lastIndexOf(":");
      const file = place.slice(0, cut);
      if (!byFile.has(file)) byFile.set(file, new Map());
      byFile.get(file).set(Number(place.slice(cut + 1)), number);
    });
    for (const [file, numbers] of [...byFile].sort()) {
      rows.push({ text: file, place: -1, head: true });
      const text = (DATA.sources ?? {})[file];
      const wanted = text ? text.map((_, n) => n + 1) : [...numbers.keys()].sort((a, b) => a - b);
      for (const number of wanted) {
        const place = numbers.get(number) ?? -1;
        if (place >= 0) rowOf.set(place, rows.length);
        const count = place < 0 ? 0 : program.byPlace[place].length;
        const first = place < 0 ? -1 : program.byPlace[place][0];
        const line = text ? text[number - 1] : program.operation[first] || program.name[first];
        rows.push({ number, text: line, place, count });
      }
    }
  };
  const first = () => {
    const found = [...selected.places].map((place) => rowOf.get(place)).filter((n) => n !== undefined);
    return found.length ? Math.min(...found) : -1;
  };
  return new Lines("Source", {
    count: () => { make(); return rows.length; },
    line: (n) => {
      const row = rows[n];
      if (row.head) return [part("name", row.text)];
      const count = row.count ? `${row.count}` : "";
      return [part("number", String(row.number)), part("count", count), part(row.count ? "" : "muted", row.text)];
    },
    chosen: (n) => rows[n].place >= 0 && selected.choose([...selected.program.byPlace[rows[n].place]], { from: "source" }),
    lit: (n) => rows[n].place >= 0 && selected.places.has(rows[n].place),
    first: () => { make(); return first(); },
  });
}
