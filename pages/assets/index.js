// The page of findings: its header and its panels.

const list = new FindingList(), growth = new GrowthChart();
const hasCampaigns = DATA.campaigns.length > 0;
const hasCoverage = DATA.campaigns.some((campaign) => Object.keys(campaign.coverage).length);
const panels = [
  new Tabs("Findings", [{ name: "Findings", root: list.root }]),
  new Tabs("Finding", [{ name: "Finding", root: new FindingDetails().root }]),
  ...(hasCampaigns ? [new Tabs("Campaigns", [
    { name: "Growth", root: growth.root, update: () => growth.draw() },
    { name: "Outcomes", root: outcomeTable() },
    hasCoverage && { name: "Coverage", root: coverageTable() },
  ])] : []),
];
document.querySelector("header").append(element("h1", { title: DATA.title }, DATA.title),
  part("muted", `${FOUND.length} findings`), element("span", { class: "gap" }), themeButton());
const main = document.querySelector("main");
main.className = "index";
main.append(...panels.map((panel) => panel.root));
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  if (event.key === "/" && !typing) { event.preventDefault(); list.words.focus(); }
});
if (FOUND.length) chosen.choose(list.shown[0]);
for (const panel of panels) panel.update();
// For tests: what is shown.
window.page = { chosen };
