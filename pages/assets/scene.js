// Where everything of a graph is drawn while some of its nodes are open.

const ROW = DATA.row;
const HEIGHT = DATA.height;
const HEAD = 30; // of an open node
const PAD = 18;

/** A place in a space that is stretched where nodes are open: order and distance are kept. */
function stretched(intervals) {
  const found = intervals.filter(([, , extra]) => extra > 0);
  return (place) => {
    let moved = place;
    for (const [begin, end, extra] of found) {
      if (place >= end) moved += extra;
      else if (place > begin) moved += (extra * (place - begin)) / (end - begin);
    }
    return moved;
  };
}

/** Lay a graph out with its open nodes, around the origin of its own. ``open`` has the paths of
 * open nodes; a path names the nodes from the outermost graph on. */
function laid(program, number, open, path) {
  const graph = program.view.graphs[number];
  const inside = new Map();
  const across = [];
  const taller = new Map();
  for (const key of Object.keys(graph.inner)) {
    const node = Number(key);
    const own = `${path}/${node}`;
    if (!open.has(own)) continue;
    const children = graph.inner[key].map((inner, n) => laid(program, inner, open, `${own}.${n}`));
    const titles = children.length > 1 ? 18 : 0;
    const width = children.reduce((sum, child) => sum + child.width + PAD, PAD);
    const height = HEAD + titles + PAD + Math.max(...children.map((child) => child.height));
    const before = program.width[graph.instruction[node]];
    inside.set(node, { children, titles, width: Math.max(width, before), height });
    across.push([graph.x[node] - before / 2, graph.x[node] + before / 2, width - before]);
    const layer = graph.layer[node];
    taller.set(layer, Math.max(taller.get(layer) ?? 0, height - HEIGHT));
  }
  const toX = stretched(across);
  const toY = stretched([...taller].map(([l, extra]) => [l * ROW, l * ROW + HEIGHT, extra]));
  const nodes = graph.instruction.map((i, n) => {
    const found = inside.get(n);
    const width = found ? found.width : program.width[i];
    return {
      graph: number, node: n, i, kernel: graph.kernel[n], path: `${path}/${n}`,
      opens: n in graph.inner, inside: found,
      x: toX(graph.x[n]) - width / 2, y: toY(graph.layer[n] * ROW),
      width, height: found ? found.height : HEIGHT,
    };
  });
  const edges = graph.edges.map(([source, target, ...bends]) => {
    const a = nodes[source], b = nodes[target];
    const long = bends[0] === null;
    const points = [[a.x + a.width / 2, a.y + a.height]];
    if (!long) {
      const bottom = toY(graph.layer[source] * ROW + HEIGHT);
      if (bottom > a.y + a.height) points.push([a.x + a.width / 2, bottom]);
      bends.forEach((bend, n) => {
        const layer = graph.layer[source] + n + 1;
        const x = toX(bend);
        points.push([x, toY(layer * ROW)], [x, toY(layer * ROW + HEIGHT)]);
      });
    }
    points.push([b.x + b.width / 2, b.y]);
    return { source: a.i, target: b.i, long, points };
  });
  return {
    title: graph.title, nodes, edges,
    width: toX(graph.width), height: toY(graph.height),
  };
}

/** All that is drawn of a program, in the coordinates of its entry: outer nodes before inner. */
class Scene {
  constructor(program, open) {
    this.program = program;
    this.open = open;
    this.nodes = [];
    this.edges = [];
    this.titles = [];
    this.byInstruction = new Map();
    const whole = laid(program, program.view.entry, open, "");
    this.width = whole.width;
    this.height = whole.height;
    this.place(whole, 0, 0);
  }

  place(graph, x, y) {
    for (const edge of graph.edges) {
      for (const point of edge.points) { point[0] += x; point[1] += y; }
      const xs = edge.points.map((p) => p[0]);
      edge.left = Math.min(...xs);
      edge.right = Math.max(...xs);
      edge.top = edge.points[0][1];
      edge.bottom = edge.points[edge.points.length - 1][1];
      this.edges.push(edge);
    }
    for (const node of graph.nodes) {
      node.x += x;
      node.y += y;
      this.nodes.push(node);
      if (!this.byInstruction.has(node.i)) this.byInstruction.set(node.i, []);
      this.byInstruction.get(node.i).push(node);
    }
    for (const node of graph.nodes) {
      if (!node.inside) continue;
      let left = node.x + PAD;
      for (const child of node.inside.children) {
        if (node.inside.titles) this.titles.push([child.title, left, node.y + HEAD + 8]);
        this.place(child, left, node.y + HEAD + node.inside.titles);
        left += child.width + PAD;
      }
    }
  }

  at(x, y) {
    for (let n = this.nodes.length - 1; n >= 0; n--) {
      const node = this.nodes[n];
      if (x >= node.x && x <= node.x + node.width && y >= node.y && y <= node.y + node.height) return node;
    }
    return null;
  }

  /** The nodes that show an instruction: its own, or the closed ones that it is in. */
  showing(i) {
    const own = this.byInstruction.get(i);
    if (own) return own;
    const steps = this.program === PROGRAMS[COMPILED] ? STEPS_OF.get(i) ?? [] : [];
    const found = this.nodes.filter((node) => node.kernel >= 0 && steps.includes(node.kernel));
    if (found.length) return found;
    return this.nodes.filter((node) => node.opens && !node.inside && this.holds(node, i));
  }

  /** Whether a closed node has an instruction anywhere inside. */
  holds(node, i) {
    const graphs = this.program.view.graphs;
    const waiting = [...graphs[node.graph].inner[node.node]];
    const wanted = new Set(this.program.nodes[i].map(([graph]) => graph));
    for (let n = 0; n < waiting.length; n++) {
      if (wanted.has(waiting[n])) return true;
      for (const inner of Object.values(graphs[waiting[n]].inner)) waiting.push(...inner);
    }
    return false;
  }
}
