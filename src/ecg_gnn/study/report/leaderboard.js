// Every model of one dataset by its score, beside what has been published.

function setUpLeaderboard() {
  const figure = byId("leaderboard-plot");
  if (!figure) return;
  const state = { dataset: 0 };
  const redraw = drawOnResize(figure, (width) =>
    drawLeaderboard(DATA.leaderboard[state.dataset].rows, width));
  const named = DATA.leaderboard.map((each, place) => [place, each.dataset]);
  if (named.length > 1) {
    byId("leaderboard-controls").append(choice("dataset", named, (value) => {
      state.dataset = Number(value);
      redraw();
    }));
  }
}

function drawLeaderboard(rows, width) {
  const narrow = width < 560;
  const left = narrow ? 20 : Math.min(360, width * 0.36);
  const pitch = narrow ? 40 : 26;
  const shown = rows.filter((row) => row.test_mean !== null || row.published_mean !== null);
  const height = shown.length * pitch + 52;
  const bottom = height - 34;
  const [low, high] = readableExtent(shown);
  const x = scale(low, high, left, width - 56);
  x.low = low;
  const picture = canvas(width, height, "Scores of every model with one standard deviation");
  for (const [value, text] of ticks(low, high, narrow ? 4 : 8)) {
    picture.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 4, y2: bottom }));
    picture.append(svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, text));
  }
  picture.append(svg("text", { x: width - 12, y: bottom + 31, "text-anchor": "end" }, "score in percent"));
  const bar = shown.find((row) => row.kind === "published");
  if (bar) {
    const at = x(bar.published_mean);
    picture.append(svg("line", { class: "zero", x1: at, x2: at, y1: 4, y2: bottom }));
  }
  shown.forEach((row, place) => {
    const top = place * pitch + 4;
    const nameY = narrow ? top + 14 : top + pitch / 2 + 4;
    const style = row.best || row.kind === "published" ? "name strong" : "name";
    const space = narrow ? width - 12 : left - 16;
    picture.append(fitted(row.best ? `${row.name} *` : row.name, 0, nameY, space, { class: style }));
    picture.append(scoreMark(row, x, narrow ? top + 28 : top + pitch / 2));
  });
  return picture;
}

// A few models far below must not squeeze all others: they stand at the edge.
function readableExtent(rows) {
  const [lowest, high] = extent(rows.flatMap(scoreEnds), 0.04);
  const means = rows.map((row) => row.test_mean ?? row.published_mean).sort((a, b) => a - b);
  const middle = means[Math.floor(means.length / 2)];
  return [Math.max(lowest, high - 3 * (high - middle)), high];
}

function scoreEnds(row) {
  const spread = row.test_std || 0;
  const ours = row.test_mean === null ? [] : [row.test_mean - spread, row.test_mean + spread];
  return row.published_mean === null ? ours : [...ours, row.published_mean];
}

function scoreMark(row, x, y) {
  const lines = [row.name];
  const shapes = [];
  const within = (value) => x(Math.max(value, x.low));
  const told = (mean, std) => mean.toFixed(2) + (std === null ? "" : ` ± ${std.toFixed(2)}`);
  if (row.test_mean !== null) {
    const spread = row.test_std || 0;
    lines.push(`ours ${told(row.test_mean, row.test_std)}, ${row.splits} split${row.splits === 1 ? "" : "s"}`);
    shapes.push(svg("line", { class: "interval", x1: within(row.test_mean - spread), x2: within(row.test_mean + spread), y1: y, y2: y }));
  }
  if (row.published_mean !== null) {
    lines.push(`published ${told(row.published_mean, row.published_std)}`);
    shapes.push(svg("circle", { class: "ring", cx: within(row.published_mean), cy: y, r: 7.5 }));
  }
  if (row.test_mean !== null) {
    shapes.push(svg("circle", { class: "dot", cx: within(row.test_mean), cy: y, r: 5 }));
  }
  const last = Math.max(...scoreEnds(row).map(within));
  const shown = row.test_mean ?? row.published_mean;
  shapes.push(svg("text", { class: "value", x: last + 12, y: y + 4 }, shown.toFixed(2)));
  if (scoreEnds(row).some((value) => value < x.low)) {
    shapes.push(svg("text", { x: x(x.low) - 16, y: y + 4 }, "‹"));
  }
  const group = mark(lines.join("\n"), row.detail, row.test_mean === null ? "source" : "records", ...shapes);
  group.setAttribute("style", `--tone: var(--${row.name.includes("ECG (") ? "ecg" : "baseline"})`);
  return group;
}
