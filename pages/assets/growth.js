// What campaigns did over time, and what became of their programs.

/** Curves of the findings over time, one for each campaign, above the table of campaigns. */
class GrowthChart {
  constructor() {
    this.body = element("div", { class: "curves" });
    this.root = element("div", { class: "details", tabindex: 0, role: "region", "aria-label": "Growth" },
      element("h2", {}, "Distinct findings over time"), this.body, this.table());
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  draw() {
    const width = this.body.clientWidth, height = 260, left = 46, top = 10, bottom = 26;
    if (!width) return;
    const points = DATA.campaigns.flatMap((campaign) => campaign.growth);
    const end = Math.max(1, ...points.map((p) => p[0])), most = Math.max(1, ...points.map((p) => p[2]));
    const toX = (seconds) => left + (seconds / end) * (width - left - 14);
    const toY = (count) => height - bottom - (count / most) * (height - top - bottom);
    const text = `${DATA.campaigns.length} campaigns, at most ${most} findings in ${after(end)}`;
    const picture = drawn("svg", { width, height, role: "img", "aria-label": text }, drawn("title", {}, text));
    const step = Math.ceil(most / 4);
    for (let count = 0; count <= most; count += step) {
      picture.append(drawn("line", { x1: left, x2: width - 14, y1: toY(count), y2: toY(count), class: "grid" }),
        drawn("text", { x: left - 8, y: toY(count) + 4, class: "small end" }, String(count)));
    }
    for (let n = 0; n <= 3; n++) picture.append(drawn("text", { x: toX((end * n) / 3), y: height - 6, class: n ? "small end" : "small" }, after((end * n) / 3)));
    DATA.campaigns.forEach((campaign, n) => {
      let path = "";
      campaign.growth.forEach(([seconds, , count], at) => { path += at ? `H${toX(seconds)}V${toY(count)}` : `M${toX(seconds)},${toY(count)}`; });
      picture.append(drawn("path", { d: path, class: `curve curve-${n % 8}` }, drawn("title", {}, nameOf(campaign.directory))));
    });
    this.body.replaceChildren(picture);
  }

  table() {
    const rows = DATA.campaigns.map((campaign, n) => {
      const [seconds, programs, found] = campaign.growth[campaign.growth.length - 1];
      const settings = Object.entries(campaign.facts).map(([name, value]) => `${name} ${value.slice(0, 200)}`).join(", ");
      const cells = [settings, size(programs), after(seconds), found, found ? (1000 * found / Math.max(1, programs)).toPrecision(2) : ""];
      return element("tr", {}, element("th", { scope: "row", class: `curve-${n % 8}` }, nameOf(campaign.directory)), ...cells.map((cell) => element("td", {}, String(cell))));
    });
    const names = ["campaign", "settings", "programs", "time", "findings", "of 1,000 programs"];
    return element("div", { class: "scroll-across", tabindex: 0, role: "region", "aria-label": "Campaigns" }, element("table", { class: "plain" },
      element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))), element("tbody", {}, ...rows)));
  }
}

/** How many programs hold, violate or are left out, by oracle, in all campaigns. */
function outcomeTable() {
  const byOracle = new Map();
  for (const { counts } of DATA.campaigns) {
    for (const [name, count] of Object.entries(counts)) {
      const cut = name.indexOf(": ");
      if (cut < 0) continue;
      const oracle = name.slice(0, cut), outcome = name.slice(cut + 2);
      if (!byOracle.has(oracle)) byOracle.set(oracle, new Map());
      byOracle.get(oracle).set(outcome, (byOracle.get(oracle).get(outcome) ?? 0) + count);
    }
  }
  const sections = [...byOracle].map(([oracle, outcomes]) => {
    const total = [...outcomes.values()].reduce((sum, count) => sum + count, 0);
    const sorted = [...outcomes].sort((a, b) => b[1] - a[1]);
    return element("section", {}, element("h2", {}, oracle),
      facts(sorted.map(([outcome, count]) => [`${size(count)}`, [bar(count / total, outcome.slice(0, 200))]])));
  });
  return element("div", { class: "details outcomes", tabindex: 0, role: "region", "aria-label": "Outcomes" }, ...sections);
}
