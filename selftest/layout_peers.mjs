// Lay a graph out by a package of npm: PACKAGE, and a graph as JSON on the standard input; see layout_peers.py.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [folder, name] = process.argv.slice(2);
const load = createRequire(join(folder, "node_modules", "x.js"));
const { widths, height, edges } = JSON.parse(readFileSync(0, "utf-8"));

/** Seconds of the processor. */
function since(begin) {
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1e6;
}

async function elkjs() {
  const graph = {
    id: "all",
    layoutOptions: { "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.edgeRouting": "POLYLINE" },
    children: widths.map((width, n) => ({ id: `n${n}`, width, height })),
    edges: edges.map(([from, to], n) => ({ id: `e${n}`, sources: [`n${from}`], targets: [`n${to}`] })),
  };
  const engine = new (load("elkjs/lib/elk.bundled.js"))();
  const begin = process.cpuUsage();
  const found = await engine.layout(graph);
  const seconds = since(begin);
  const lines = found.edges.map(({ sections: [{ startPoint, bendPoints = [], endPoint }] }) =>
    [startPoint, ...bendPoints, endPoint].map(({ x, y }) => [x, y]));
  return { seconds, lines };
}

async function graphviz() {
  const { Graphviz } = await import(load.resolve("@hpcc-js/wasm-graphviz"));
  const engine = await Graphviz.load();
  const nodes = widths.map((width, n) => `n${n} [width=${width / 72}]`).join(";");
  const text = `digraph { splines=polyline; node [shape=box, fixedsize=true, height=${height / 72}, label=""];
    ${nodes}; ${edges.map(([from, to]) => `n${from} -> n${to}`).join(";")} }`;
  const begin = process.cpuUsage();
  const plain = engine.layout(text, "plain", "dot");
  const seconds = since(begin);
  const lines = plain.split("\n").filter((line) => line.startsWith("edge ")).map((line) => {
    const words = line.split(" "), count = Number(words[3]);
    const points = Array.from({ length: count }, (_, n) => [72 * words[4 + 2 * n], -72 * words[5 + 2 * n]]);
    return points.filter((_, n) => n % 3 === 0); // the others are control points on the same lines
  });
  return { seconds, lines };
}

console.log(JSON.stringify(await { elkjs, graphviz }[name]()));
