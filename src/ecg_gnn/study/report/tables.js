const FEW = 12;

// Tables: sort by a heading, filter by words and by dataset or model, open a row.

function setUpTable(table) {
  const rows = [...table.tBodies[0].rows];
  rows.forEach((row, place) => { row.place = place; });
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    for (const row of rows) row.cells[column].dataset.label = heading.textContent.trim();
    heading.querySelector("button").addEventListener("click", () => {
      sortTable(table, rows, headings, column);
    });
  });
  table.after(el("button", {
    type: "button",
    class: "all",
    onclick: () => table.classList.add("whole"),
  }, "Show all rows"));
  setUpFilters(table, rows, headings);
  table.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-detail]");
    if (!row || String(getSelection())) return;
    const cell = event.target.closest("td");
    openDetail(row.dataset.detail, cell ? headings[cell.cellIndex].dataset.part : "records");
  });
  table.addEventListener("keydown", (event) => moveFocus(event, table));
}

function sortTable(table, rows, headings, column) {
  const heading = headings[column];
  const before = heading.getAttribute("aria-sort");
  const number = heading.classList.contains("number");
  const first = number ? "descending" : "ascending";
  const second = number ? "ascending" : "descending";
  const next = before === first ? second : before === second ? null : first;
  headings.forEach((each) => each.removeAttribute("aria-sort"));
  if (next) heading.setAttribute("aria-sort", next);
  table.classList.toggle("sorted", next !== null);
  const sorted = [...rows].sort((a, b) => {
    if (!next) return a.place - b.place;
    return compareCells(a.cells[column], b.cells[column], number, next === "ascending")
      || a.place - b.place;
  });
  table.tBodies[0].append(...sorted);
  markMore(table);
}

// On a phone every row is a card, and a dozen of them are enough until asked for.
function markMore(table) {
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    shown += !row.hidden;
    row.classList.toggle("more", shown > FEW);
  }
  table.nextElementSibling.hidden = shown <= FEW;
}

function compareCells(a, b, number, ascending) {
  const [x, y] = [a.dataset.sort, b.dataset.sort];
  if (x === undefined || y === undefined) {  // what is missing goes last, both ways
    return (x === undefined) - (y === undefined);
  }
  const order = number ? Number(x) - Number(y) : x.localeCompare(y);
  return ascending ? order : -order;
}

function setUpFilters(table, rows, headings) {
  const controls = document.querySelector(`[data-for="${table.id}"]`);
  const chosen = {};
  const count = el("span", { class: "count", "aria-live": "polite" });
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word))
        && Object.entries(chosen).every(([column, value]) =>
          !value || row.cells[column].textContent === value);
      row.hidden = !fits;
      shown += fits;
    }
    table.classList.toggle("filtered", shown < rows.length);
    count.textContent = shown === rows.length
      ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    markMore(table);
  };
  const search = el("input", {
    type: "search",
    placeholder: "Filter rows…",
    "aria-label": "Filter rows by words",
    oninput: apply,
  });
  controls.append(search);
  headings.forEach((heading, column) => {
    const values = distinct(rows.map((row) => row.cells[column].textContent));
    if (!heading.dataset.facet || values.length < 2) return;
    const options = [["", "all"], ...values.map((value) => [value, value])];
    controls.append(choice(heading.dataset.facet, options, (value) => {
      chosen[column] = value;
      apply();
    }));
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
  while (lines[line] && lines[line].cells[column]) {
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
