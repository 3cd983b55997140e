// Sorts and filters tables, and opens what is behind a number. Text always enters the
// page as text, never as markup.

const DETAILS = JSON.parse(document.getElementById("details").textContent);
const FEW = 12;
const LONG = 30;
const byId = (id) => document.getElementById(id);
const drawer = byId("drawer");

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

// --- Tables: sort by a heading, filter by words and by dataset or model, open a row.

function setUpTable(table) {
  const rows = [...table.tBodies[0].rows];
  rows.forEach((row, place) => { row.place = place; });
  const headings = [...table.tHead.rows[0].cells];
  table.facets = headings.filter((each) => each.dataset.facet).map((each) => each.cellIndex);
  headings.forEach((heading, column) => {
    for (const row of rows) row.cells[column].dataset.label = heading.textContent.trim();
    heading.querySelector("button").addEventListener("click", () => {
      sortTable(table, rows, headings, column);
    });
  });
  const all = { type: "button", class: "all", onclick: () => table.classList.add("whole") };
  table.after(el("button", all, "Show all rows"));
  setUpFilters(table, rows, headings);
  table.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-detail]");
    if (row && !String(getSelection())) openDetail(row.dataset.detail);
  });
  table.addEventListener("keydown", (event) => moveFocus(event, table));
}

function sortTable(table, rows, headings, column) {
  const heading = headings[column];
  const number = heading.classList.contains("number");
  const orders = number ? ["descending", "ascending"] : ["ascending", "descending"];
  const next = [...orders, undefined][orders.indexOf(heading.getAttribute("aria-sort")) + 1];
  headings.forEach((each) => each.removeAttribute("aria-sort"));
  if (next) heading.setAttribute("aria-sort", next);
  const order = (a, b) => (next
    ? compareCells(a.cells[column], b.cells[column], number, next === "ascending") : 0);
  table.tBodies[0].append(...[...rows].sort((a, b) => order(a, b) || a.place - b.place));
  markRows(table);
}

function compareCells(a, b, number, ascending) {
  const [x, y] = [a.dataset.sort, b.dataset.sort];
  if (x === undefined || y === undefined) {  // what is missing goes last, both ways
    return (x === undefined) - (y === undefined);
  }
  const order = number ? Number(x) - Number(y) : x.localeCompare(y);
  return ascending ? order : -order;
}

// Of labels that repeat those above them the first is enough. On a phone every row is a
// card, and a dozen of them are enough until asked for.
function markRows(table) {
  let above;
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    shown += !row.hidden;
    row.classList.toggle("more", shown > FEW);
    if (row.hidden) continue;
    let same = Boolean(above);
    for (const place of table.facets) {
      same &&= row.cells[place].textContent === above.cells[place].textContent;
      row.cells[place].classList.toggle("same", same);
    }
    row.classList.toggle("rule", table.facets.length > 0 && !same);
    above = row;
  }
  table.nextElementSibling.hidden = shown <= FEW;
}

function setUpFilters(table, rows, headings) {
  const controls = document.querySelector(`[data-for="${table.id}"]`);
  const chosen = {};
  const count = el("span", { class: "count", "aria-live": "polite" });
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(words.every((word) => text.includes(word))
        && Object.entries(chosen).every(([column, value]) =>
          !value || row.cells[column].textContent === value));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = shown === rows.length
      ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    markRows(table);
  };
  const search = el("input", { type: "search", placeholder: "Filter rows…",
    "aria-label": "Filter rows by words", oninput: apply });
  controls.append(search);
  headings.forEach((heading, column) => {
    const values = [...new Set(rows.map((row) => row.cells[column].textContent))];
    if (!heading.dataset.facet || values.length < 2) return;
    const options = values.map((value) => el("option", { value }, value));
    const choose = () => { chosen[column] = select.value; apply(); };
    const select = el("select", { onchange: choose }, el("option", { value: "" }, "all"), options);
    // A long table opens on one dataset.
    if (heading.dataset.facet === "dataset" && rows.length > LONG) {
      chosen[column] = select.value = values[0];
    }
    controls.append(el("label", {}, heading.dataset.facet, select));
  });
  controls.append(count);
  apply();
}

function moveFocus(event, table) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const step = steps[event.key];
  const from = event.target.closest("td");
  if (!step || !from) return;
  const lines = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  let [line, column] = [lines.indexOf(from.parentNode) + step[0], from.cellIndex + step[1]];
  while (lines[line]?.cells[column]) {
    const button = lines[line].cells[column].querySelector(".cell");
    if (button) {
      event.preventDefault();
      button.focus();
      return;
    }
    line += step[0];
    column += step[1];
  }
}

// --- The drawer: records, tests, settings and commands behind a number.

function openDetail(id, part) {
  const detail = DETAILS[id];
  byId("drawer-h").textContent = detail.title;
  byId("drawer-sub").textContent = detail.subtitle;
  byId("drawer-body").replaceChildren(...detailParts(detail).flat());
  if (!drawer.open) drawer.showModal();
  drawer.scrollTop = 0;
  if (part) byId(`part-${part}`)?.scrollIntoView({ block: "start", behavior: "instant" });
  byId("drawer-h").focus({ preventScroll: true });
}

function detailParts(detail) {
  const [options, comment] = detail.command;
  const again = ([split, seed]) => `${options} --splits ${split} --seed ${seed}${comment}`;
  const commands = detail.records.rows.map(again);
  const made = detail.provenance.filter(([name]) => name === "command");
  const title = commands.length > 1 ? "Compute the first record again" : "Compute it again";
  const { records, tests, tried } = detail;
  return [
    detail.note ? el("p", { class: "note" }, detail.note) : [],
    pairs(detail.facts, "numbers"),
    part("records", "Records", smallTable(records, commands)),
    part("tests", "Paired comparisons", tests.length && el("div", { class: "tests" }, tests.map(
      (test) => el("div", {}, el("h4", {}, `Minus ${test.against}`), pairs(test.values))))),
    part("commands", title, command(commands[0])),
    part("made", "Made by", made.length && made.map(([, text]) => command(text))),
    part("tried", `Chosen on validation from ${tried.count}`, tried.count > 1 && smallTable(tried, [])),
    part("settings", "Settings", pairs(detail.settings)),
    part("provenance", "Where it was computed", pairs(detail.provenance)),
  ];
}

function part(name, title, content) {
  return content ? [el("h3", { id: `part-${name}` }, title), content].flat() : [];
}

function pairs(values, kind = "pairs") {
  return el("dl", { class: kind }, values.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function smallTable(table, commands) {
  const titles = commands.length ? [...table.titles, "command"] : table.titles;
  const rows = table.rows.map((row, place) => el("tr", {}, row.map((text) => el("td", {}, text)),
    commands[place] ? el("td", {}, copyButton(commands[place], `Copy the command of row ${place + 1}`)) : null));
  return el("div", { class: "scroll" }, el("table", { class: "small" },
    el("thead", {}, el("tr", {}, titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, rows)));
}

function command(text) {
  return el("div", { class: "command" }, el("pre", {}, text), copyButton(text, "Copy the command"));
}

function copyButton(text, label) {
  const button = el("button", { type: "button", class: "copy", "aria-label": label,
    onclick: async () => {
      button.textContent = (await copyText(text)) ? "copied" : "select it";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    } }, "copy");
  return button;
}

// A page opened from a disk may not use the clipboard everywhere: the old way then.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", {}, text);
    drawer.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// --- The page.

function setUpTheme() {
  const root = document.documentElement;
  const remembered = () => { try { return localStorage.getItem("ecg-theme"); } catch { return null; } };
  if (remembered()) root.dataset.theme = remembered();
  byId("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    try { localStorage.setItem("ecg-theme", root.dataset.theme); } catch { /* not kept */ }
  });
}

setUpTheme();
byId("drawer-close").addEventListener("click", () => drawer.close());
drawer.addEventListener("click", (event) => { if (event.target === drawer) drawer.close(); });
for (const button of document.querySelectorAll("[data-detail]:is(.tile, .side)")) {
  button.addEventListener("click", () => openDetail(button.dataset.detail, button.dataset.part));
}
for (const table of document.querySelectorAll("table.data")) setUpTable(table);
// The browser looked for the link's place before tables had their filters.
if (location.hash) byId(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
// Notes are folded on a screen and open on paper.
addEventListener("beforeprint", () => {
  for (const notes of document.querySelectorAll("details")) notes.open = true;
});
