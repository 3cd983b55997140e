// Homophily of every graph before and after evolution.

const MEASURES = {
  edge_homophily: "edge homophily",
  adjusted_homophily: "adjusted homophily",
  label_informativeness: "label informativeness",
  node_homophily: "node homophily",
  class_homophily: "class homophily",
};

function setUpHomophily() {
  const figure = byId("homophily-plot");
  if (!figure) return;
  const state = { dataset: 0, measure: "edge_homophily" };
  const redraw = drawOnResize(figure, (width) =>
    drawHomophily(DATA.homophily[state.dataset].graphs, state.measure, width));
  const controls = byId("homophily-controls");
  const named = DATA.homophily.map((each, place) => [place, each.dataset]);
  if (named.length > 1) {
    controls.append(choice("dataset", named, (value) => { state.dataset = Number(value); redraw(); }));
  }
  controls.append(choice("measure", Object.entries(MEASURES), (value) => {
    state.measure = value;
    redraw();
  }));
}

function drawHomophily(graphs, measure, width) {
  const narrow = width < 560;
  const left = narrow ? 150 : 330;
  const pitch = 25;
  const height = graphs.length * pitch + 44;
  const values = graphs.flatMap((graph) => [graph.values[measure], graph.paper[measure]]);
  const [low, high] = extent(values, 0.1);
  const x = scale(low, high, left, width - 46);
  x.start = left;
  const picture = canvas(width, height, `${MEASURES[measure]} of every graph`);
  const bottom = height - 30;
  for (const [value, text] of ticks(low, high, narrow ? 4 : 8)) {
    picture.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 4, y2: bottom }));
    picture.append(svg("text", { x: x(value), y: bottom + 18, "text-anchor": "middle" }, text));
  }
  const before = graphs.find((graph) => graph.input);
  const start = before ? before.values[measure] : null;
  if (start !== null) {
    picture.append(svg("line", { class: "zero", x1: x(start), x2: x(start), y1: 4, y2: bottom }));
  }
  graphs.forEach((graph, place) => {
    const y = place * pitch + pitch / 2 + 4;
    const name = graph.input ? "G, as it came" : graph.label.replace(/^G_ECG \((.*)\)$/, "$1");
    picture.append(fitted(name, 0, y + 4, left - 14, { class: "name" }));
    picture.append(...homophilyMarks(graph, measure, start, x, y));
  });
  return picture;
}

function homophilyMarks(graph, measure, start, x, y) {
  const value = graph.values[measure];
  if (value === null) {
    return [svg("text", { x: x.start + 6, y: y + 4 }, "undefined")];
  }
  const paper = graph.paper[measure];
  const lines = [graph.label, `${MEASURES[measure]} ${minus(value.toFixed(3))}`];
  if (start !== null && !graph.input) lines.push(`${signed(value - start, 3)} against G`);
  if (paper !== null) lines.push(`paper ${minus(paper.toFixed(2))}`);
  const shapes = [];
  if (start !== null) {
    shapes.push(svg("line", { class: "stem", x1: x(start), x2: x(value), y1: y, y2: y }));
  }
  if (paper !== null) shapes.push(svg("circle", { class: "ring", cx: x(paper), cy: y, r: 7.5 }));
  shapes.push(svg("circle", { class: "dot", cx: x(value), cy: y, r: 5 }));
  const edge = Math.max(x(value), x(paper ?? value), x(start ?? value)) + 12;
  shapes.push(svg("text", { x: edge, y: y + 4 }, minus(value.toFixed(3))));
  const group = mark(lines.join("\n"), graph.detail, "records", ...shapes);
  group.setAttribute("style", `--tone: var(--${graph.input ? "baseline" : "ecg"})`);
  return [group];
}
