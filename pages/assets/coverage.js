// Which opcodes were drawn with which element types.

/** A table of opcodes by types: how many instructions were drawn, darker for more. */
function coverageTable() {
  const counts = new Map(), types = new Set();
  let most = 1;
  for (const { coverage } of DATA.campaigns) {
    for (const [pair, count] of Object.entries(coverage)) {
      counts.set(pair, (counts.get(pair) ?? 0) + count);
      types.add(pair.slice(pair.indexOf(" ") + 1));
      most = Math.max(most, counts.get(pair));
    }
  }
  const columns = [...types].sort(), drawnOnes = new Set([...counts.keys()].map((pair) => pair.split(" ")[0]));
  const missing = DATA.opcodes.filter((opcode) => !drawnOnes.has(opcode));
  const cell = (opcode, type) => {
    const count = counts.get(`${opcode} ${type}`) ?? 0;
    const made = element("td", { title: `${opcode} ${type}: ${count}` }, count ? size(count) : "");
    const part = Math.round((50 * Math.log1p(count)) / Math.log1p(most));
    if (count) made.style.background = `color-mix(in oklab, var(--family-0) ${part}%, var(--surface))`;
    return made;
  };
  const rows = [...drawnOnes].sort().map((opcode) => element("tr", {}, element("th", { scope: "row" }, opcode), ...columns.map((type) => cell(opcode, type))));
  return element("div", { class: "scroll coverage", tabindex: 0, role: "region", "aria-label": "Coverage" },
    element("p", { class: "muted" }, `${counts.size} pairs of opcode and element type; ${drawnOnes.size} opcodes drawn.`
      + (missing.length ? ` Not drawn: ${missing.join(", ")}.` : "")),
    element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "opcode"), ...columns.map((type) => element("th", { scope: "col" }, type)))),
      element("tbody", {}, ...rows)));
}
