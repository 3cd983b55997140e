// What all plots share: scales, axes, a tooltip, drawing again at another width.

function scale(low, high, from, to) {
  const size = high - low || 1;
  return (value) => from + ((value - low) / size) * (to - from);
}

function ticks(low, high, wanted) {
  const rough = (high - low || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || rough;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    found.push([i * step, minus((i * step + 0).toFixed(Math.min(digits, 6)))]);
  }
  return found;
}

function extent(values, pad) {
  const known = values.filter((value) => value !== null && Number.isFinite(value));
  if (!known.length) return [0, 1];
  let [low, high] = [Math.min(...known), Math.max(...known)];
  const margin = (high - low || Math.abs(high) || 1) * pad;
  return [low - margin, high + margin];
}

function drawOnResize(figure, draw) {
  let width = 0;
  const redraw = () => {
    width = Math.max(280, Math.floor(figure.clientWidth));
    const again = draw(width);
    figure.replaceChildren(again);
  };
  redraw();
  new ResizeObserver(() => {
    if (Math.abs(figure.clientWidth - width) > 4) redraw();
  }).observe(figure);
  return redraw;
}

function canvas(width, height, label) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
}

const tip = byId("tip");

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, x + 14), innerWidth - box.width - 8);
  const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}

function hideTip() {
  tip.hidden = true;
}

// A mark that says what it is on hover and focus, and opens its details.
function mark(text, detail, part, ...shapes) {
  const open = () => { hideTip(); openDetail(detail, part); };
  const node = svg("g", {
    role: "button",
    tabindex: 0,
    "aria-label": text.replaceAll("\n", ", "),
    onmousemove: (event) => showTip(text, event.clientX, event.clientY),
    onmouseleave: hideTip,
    onfocus: () => {
      const box = node.getBoundingClientRect();
      if (node.matches(":focus-visible")) showTip(text, box.right, box.top);
    },
    onblur: hideTip,
    onclick: open,
    onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); }
    },
  }, ...shapes);
  return node;
}

// Text that is cut where it would not fit; the whole of it is in its title.
function fitted(text, x, y, space, attributes) {
  const fits = Math.max(4, Math.floor(space / 6.4));
  const shown = text.length > fits ? `${text.slice(0, fits - 1)}…` : text;
  return svg("text", { x, y, ...attributes }, shown, svg("title", {}, text));
}
