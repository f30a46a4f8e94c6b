// The findings by oracle, and all that is known of the one that is chosen.

const FOUND = DATA.found;
const MOST_ROWS = 500; // of the list
const chosen = {
  finding: -1,
  listeners: [],
  choose(number) {
    this.finding = number;
    for (const listener of this.listeners) listener();
  },
};

/** Print seconds as minutes or hours; nothing for a report, which is of no campaign. */
function after(seconds) {
  if (seconds === null) return "";
  if (seconds < 600) return `${Math.max(0, Math.round(seconds))} s`;
  return seconds < 36000 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** The last part of a path. */
function nameOf(path) {
  return path.split("/").filter(Boolean).pop() ?? path;
}

/** Count rows by what each is. */
function tally(rows, of) {
  const found = new Map();
  for (const row of rows) found.set(of(row), (found.get(of(row)) ?? 0) + 1);
  return found;
}

/** A list to choose from: by oracle, and those in which each word of a text is found. */
class FindingList {
  constructor() {
    const oracles = tally(FOUND, (one) => one.oracle);
    this.words = element("input", { type: "search", placeholder: "Search  ( / )", "aria-label": "Search findings", autocomplete: "off", spellcheck: "false", input: () => this.draw() });
    this.oracle = element("select", { "aria-label": "Oracle", change: () => this.draw() },
      element("option", { value: "" }, `all oracles (${FOUND.length})`),
      ...[...oracles].map(([name, count]) => element("option", { value: name }, `${name} (${count})`)));
    this.body = element("div", { class: "findings-list", role: "listbox", tabindex: 0, "aria-label": "Findings", keydown: (event) => this.key(event) });
    this.root = element("div", { class: "column" }, element("div", { class: "bar-of-tools" }, this.words, this.oracle), this.body);
    chosen.listeners.push(() => this.light());
    this.draw();
  }

  /** Whether a finding has the oracle and the words that are wanted. */
  has(one) {
    if (this.oracle.value && one.oracle !== this.oracle.value) return false;
    const text = `${one.oracle} ${one.kind} ${one.blamed} ${one.detail} ${one.directory}`.toLowerCase();
    return this.words.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  draw() {
    const numbers = FOUND.map((_, n) => n).filter((n) => this.has(FOUND[n]));
    const byOracle = new Map();
    for (const n of numbers.slice(0, MOST_ROWS)) {
      if (!byOracle.has(FOUND[n].oracle)) byOracle.set(FOUND[n].oracle, []);
      byOracle.get(FOUND[n].oracle).push(n);
    }
    this.shown = [...byOracle.values()].flat();
    const groups = [...byOracle].map(([oracle, of], number) => element("div", { role: "group", "aria-labelledby": `oracle-${number}` },
      element("h3", { id: `oracle-${number}`, role: "presentation" }, oracle, " ", part("muted", String(of.length))), ...of.map((n) => this.row(n))));
    const rest = numbers.length - this.shown.length;
    const said = !numbers.length ? "Nothing is found." : rest ? `${rest} more: search for them.` : "";
    this.body.replaceChildren(...groups, element("p", { class: "muted" }, said));
    this.light();
  }

  row(n) {
    const one = FOUND[n];
    return element("div", { role: "option", id: `finding-${n}`, class: "finding-row", "data-n": n, click: () => chosen.choose(n) },
      part("aside", [one.times > 1 ? `×${one.times}` : "", after(one.seconds)].filter(Boolean).join(", ")),
      part("bad", `${one.is_flaky ? "flaky: " : ""}${one.kind}`.slice(0, 200)), " ", part("name", (one.blamed || nameOf(one.directory)).slice(0, 200)),
      element("div", { class: "muted" }, one.detail === one.kind ? "" : one.detail.slice(0, 120)));
  }

  light() {
    this.body.removeAttribute("aria-activedescendant");
    for (const row of this.body.querySelectorAll("[data-n]")) {
      const lit = Number(row.dataset.n) === chosen.finding;
      row.classList.toggle("lit", lit);
      row.setAttribute("aria-selected", lit ? "true" : "false");
      if (lit) {
        this.body.setAttribute("aria-activedescendant", row.id);
        row.scrollIntoView({ block: "nearest" });
      }
    }
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.shown.length) return;
    event.preventDefault();
    const next = this.shown.indexOf(chosen.finding) + step;
    chosen.choose(this.shown[Math.max(0, Math.min(this.shown.length - 1, next))]);
  }
}

/** A text that keeps its lines, in a box of its own. */
function textBox(name, text) {
  return element("pre", { class: "program", tabindex: 0, role: "region", "aria-label": name }, text);
}

/** The reduced program of a finding, its evidence, and what else is known. */
class FindingDetails {
  constructor() {
    this.root = element("div", { class: "details", tabindex: 0, role: "region", "aria-label": "Finding" });
    chosen.listeners.push(() => this.draw());
    this.draw();
  }

  draw() {
    const one = FOUND[chosen.finding];
    if (!one) {
      this.root.replaceChildren(element("p", { class: "muted" }, FOUND.length ? "Choose a finding: its program and the evidence are shown here." : "Nothing was found."));
      return;
    }
    const parts = [element("section", {}, element("h2", {}, one.kind),
      facts([["oracle", one.oracle], ["to blame", one.blamed], ["what", one.detail === one.kind ? "" : one.detail],
        ["seen", one.times > 1 ? `${one.times} times` : ""], ["first after", after(one.seconds)],
        ["repeats", one.is_flaky ? "no: it is flaky" : ""],
        ...Object.entries(one.facts), ["folder", one.directory]]))];
    if (one.program) parts.push(element("section", {}, element("h2", {}, "Reduced program"), textBox("Reduced program", one.program)));
    if (one.wrong.length) parts.push(element("section", {}, element("h2", {}, "Evidence"), this.evidence(one.wrong)));
    if (one.issue) parts.push(element("section", {}, element("details", {}, element("summary", {}, "The issue"), textBox("Issue", one.issue))));
    this.root.replaceChildren(...parts);
    this.root.scrollTop = 0;
  }

  evidence(rows) {
    const names = ["element", "actual", "expected", "legal"];
    return element("div", { class: "scroll-across", tabindex: 0, role: "region", "aria-label": "Evidence" }, element("table", { class: "plain" },
      element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, n) => element("td", { class: n === 1 ? "bad" : "" }, cell)))))));
  }
}
