// ECG minus baseline and ECG minus identity, with intervals.

const RIVALS = { baseline: "baseline", identity: "identity" };

function setUpEffects() {
  const figure = byId("effects-plot");
  if (!figure) return;
  const state = { rows: "results", dataset: "", baseline: true, identity: true };
  const redraw = drawOnResize(figure, (width) => drawEffects(state, width));
  const set = (name) => (value) => { state[name] = value; redraw(); };
  const controls = byId("effects-controls");
  const datasets = distinct(DATA.effects.results.map((row) => row.dataset));
  if (datasets.length > 1) {
    const options = [["", "all"], ...datasets.map((name) => [name, name])];
    controls.append(choice("dataset", options, set("dataset")));
  }
  if (DATA.effects.embeddings.length > DATA.effects.results.length) {
    const options = [["results", "chosen on validation"], ["embeddings", "every one"]];
    controls.append(choice("embedding", options, set("rows")));
  }
  const measured = Object.keys(RIVALS)
    .filter((other) => DATA.effects.embeddings.some((row) => row[other]));
  controls.append(el("div", { class: "chips" }, ...measured.map((other) =>
    chip(`ECG − ${other}`, true, RIVALS[other], set(other)))));
}

function drawEffects(state, width) {
  const rows = DATA.effects[state.rows]
    .filter((row) => !state.dataset || row.dataset === state.dataset);
  const shown = Object.keys(RIVALS)
    .filter((other) => state[other] && rows.some((row) => row[other]));
  const values = rows.flatMap((row) => shown.flatMap((other) => row[other] || []));
  const [low, high] = extent([0, ...values], 0.06);
  const narrow = width < 560;
  const left = narrow ? 96 : 210;
  const x = scale(low, high, left, width - 12);
  const pitch = 34;
  const groups = distinct(rows.map((row) => row.dataset));
  const height = groups.length * 30 + rows.length * pitch + 44;
  const picture = canvas(width, height, "Effects with 95% intervals");
  const bottom = height - 34;
  for (const [value, text] of ticks(low, high, narrow ? 4 : 8)) {
    picture.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 8, y2: bottom }));
    picture.append(svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, text));
  }
  picture.append(svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 8, y2: bottom }));
  picture.append(svg("text", { x: width - 12, y: bottom + 31, "text-anchor": "end" },
    "difference in points"));
  let y = 0;
  for (const dataset of groups) {
    y += 24;
    picture.append(fitted(dataset, 0, y, width * 0.8, { class: "group" }));
    y += 6;
    for (const row of rows.filter((each) => each.dataset === dataset)) {
      const every = state.rows === "embeddings";
      const name = every ? `${row.model} ${row.label.replace("ECG ", "")}` : row.model;
      picture.append(fitted(name, 0, y + pitch / 2 + 4, left - 12, { class: "name" }));
      shown.forEach((other, place) => {
        if (!row[other]) return;
        const at = y + pitch / 2 + (place - (shown.length - 1) / 2) * 13;
        picture.append(effectMark(row, other, x, at));
      });
      y += pitch;
    }
  }
  return picture;
}

function effectMark(row, other, x, y) {
  const [mean, low, high] = row[other];
  const interval = low === null ? "one split: no interval"
    : `95% interval ${signed(low)} to ${signed(high)}`;
  const text = `${row.dataset} · ${row.model}\n${row.label} − ${other}: ${signed(mean)} points\n${interval}`;
  const ends = low === null ? [mean, mean] : [low, high];
  const shape = other === "identity"
    ? svg("path", { class: "dot", d: diamond(x(mean), y, 6.2) })
    : svg("circle", { class: "dot", cx: x(mean), cy: y, r: 5.2 });
  const group = mark(text, row.detail, "tests",
    svg("line", { class: "interval", x1: x(ends[0]), x2: x(ends[1]), y1: y, y2: y }),
    svg("rect", { class: "hit", x: x(ends[0]) - 7, width: x(ends[1]) - x(ends[0]) + 14, y: y - 7, height: 14 }),
    shape);
  group.setAttribute("style", `--tone: var(--${RIVALS[other]})`);
  return group;
}

function diamond(x, y, r) {
  return `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
}
