// Training curves: mean over splits, with a band.

const CURVES = { test: "test score (%)", val: "validation score (%)", loss: "training loss" };
let drawn = 0;
const EXTRA_TONES = ["ecg", "random", "good", "oracle", "bad", "link"];

function setUpCurves() {
  const figure = byId("curves-plot");
  if (!figure) return;
  const state = { group: 0, series: "test", hidden: new Set() };
  const chips = el("div", { class: "chips" });
  const redraw = drawOnResize(figure, (width) =>
    drawCurves(curveLines(state).filter((line) => line.on), state.series, width));
  const refresh = () => {
    chips.replaceChildren(...curveLines(state).map((line) =>
      chip(line.label, line.on, line.tone, (on) => { line.source.shown = on; redraw(); })));
    redraw();
  };
  const named = DATA.curves.map((group, place) => [place, `${group.dataset} · ${group.model}`]);
  byId("curves-controls").append(
    choice("model", named, (value) => { state.group = Number(value); refresh(); }),
    choice("curve", Object.entries(CURVES), (value) => { state.series = value; redraw(); }),
    chips);
  const busiest = DATA.curves.findIndex((group) => group.lines.length > 1);
  if (busiest > 0) {
    state.group = busiest;
    byId("curves-controls").querySelector("select").value = busiest;
  }
  refresh();
}

function curveLines(state) {
  let extra = 0;
  return DATA.curves[state.group].lines.map((line) => {
    const own = ["baseline", "identity"].includes(line.variant);
    const chosen = line.variant === "ecg" && line.best;
    const tone = own ? line.variant : chosen ? "ecg" : EXTRA_TONES[1 + (extra++ % 5)];
    return { ...line, source: line, on: line.shown, tone };
  });
}

function drawCurves(lines, series, width) {
  const [left, right, top, bottom, height] = [46, 8, 10, 36, Math.min(380, width * 0.62)];
  const picture = canvas(width, height, `Training curves: ${CURVES[series]}`);
  const steps = Math.max(1, ...lines.map((line) => line.steps[line.steps.length - 1]));
  // Scores rush up at first: the axis is for what comes after, and cuts the rush off.
  const ends = lines.flatMap((line) => known(line, series)
    .filter((point) => point.step >= steps * 0.08)
    .flatMap((point) => [point.mean - point.spread, point.mean + point.spread]));
  const [low, high] = extent(ends, 0.04);
  const x = scale(1, Math.max(2, steps), left, width - right);
  const y = scale(low, high, height - bottom, top);
  for (const [value, text] of ticks(low, high, 5)) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    picture.append(svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  for (const [value, text] of ticks(0, steps, width < 560 ? 4 : 8)) {
    if (value < 1) continue;
    picture.append(svg("text", { x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, text));
  }
  picture.append(svg("text", { x: width - right, y: height - 2, "text-anchor": "end" }, "step"));
  const window = `curves-${drawn += 1}`;
  picture.append(svg("clipPath", { id: window }, svg("rect", {
    x: left, y: top - 4, width: width - right - left, height: height - bottom - top + 4,
  })));
  for (const line of lines) {
    const group = svg("g", { "clip-path": `url(#${window})`, style: `--tone: var(--${line.tone})` });
    group.append(svg("path", { class: "band", d: bandPath(line, series, x, y) }));
    group.append(svg("path", { class: "line", d: linePath(line, series, x, y) }));
    picture.append(group);
  }
  picture.append(curveCursor(lines, series, x, { left, right: width - right, top, bottom: height - bottom }));
  return picture;
}

function known(line, series) {
  return line.steps
    .map((step, i) => ({ step, mean: line[series][0][i], spread: line[series][1][i] || 0 }))
    .filter((point) => point.mean !== null);
}

function path(points) {
  return points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
}

function linePath(line, series, x, y) {
  return path(known(line, series).map((p) => [x(p.step), y(p.mean)]));
}

function bandPath(line, series, x, y) {
  const points = known(line, series);
  if (!points.length) return "";
  const upper = points.map((p) => [x(p.step), y(p.mean + p.spread)]);
  const lower = points.map((p) => [x(p.step), y(p.mean - p.spread)]).reverse();
  return `${path([...upper, ...lower])}Z`;
}

function curveCursor(lines, series, x, box) {
  const rule = svg("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const area = svg("rect", {
    class: "hit", x: box.left, y: box.top,
    width: box.right - box.left, height: box.bottom - box.top,
    onmousemove: (event) => {
      if (!lines.length) return;
      const frame = area.getBoundingClientRect();
      const share = (event.clientX - frame.left) / frame.width;
      const place = nearest(lines[0].steps, x, box.left + share * (box.right - box.left));
      const step = lines[0].steps[place];
      rule.setAttribute("x1", x(step));
      rule.setAttribute("x2", x(step));
      rule.setAttribute("visibility", "visible");
      const said = lines.map((line) => curveText(line, series, step));
      showTip([`step ${step}`, ...said].join("\n"), event.clientX, event.clientY);
    },
    onmouseleave: () => { rule.setAttribute("visibility", "hidden"); hideTip(); },
  });
  return svg("g", {}, rule, area);
}

function nearest(steps, x, at) {
  let best = 0;
  steps.forEach((step, i) => {
    if (Math.abs(x(step) - at) < Math.abs(x(steps[best]) - at)) best = i;
  });
  return best;
}

function curveText(line, series, step) {
  const points = known(line, series);
  const point = points.find((each) => each.step >= step) || points[points.length - 1];
  if (!point) return `${line.label}: —`;
  const digits = series === "loss" ? 3 : 2;
  return `${line.label}: ${minus(point.mean.toFixed(digits))} ± ${point.spread.toFixed(digits)}`;
}
