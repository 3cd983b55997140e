// Small helpers. Text always enters the page as text, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
for (const group of DATA.curves) {
  for (const line of group.lines) line.steps = DATA.steps[line.steps];
}
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

function minus(text) {
  return text.replace("-", "−");
}

function signed(value, digits = 2) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
}

function distinct(values) {
  return [...new Set(values)];
}

function choice(title, values, change) {
  const options = values.map(([value, text]) => el("option", { value }, text));
  const select = el("select", { onchange: () => change(select.value) }, ...options);
  return el("label", {}, title, select);
}

function chip(text, pressed, tone, change) {
  const button = el("button", {
    type: "button",
    class: "chip",
    "aria-pressed": String(pressed),
    style: tone ? `--tone: var(--${tone})` : null,
    onclick: () => {
      const now = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(now));
      change(now);
    },
  }, text);
  return button;
}
