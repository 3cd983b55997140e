// What is behind a number: a dialog with its records, tests, settings and commands.

const drawer = byId("drawer");

function openDetail(id, part) {
  const detail = DATA.details[id];
  if (!detail) return;
  byId("drawer-h").textContent = detail.title;
  byId("drawer-sub").textContent = detail.subtitle;
  byId("drawer-body").replaceChildren(...detailParts(id, detail).filter(Boolean));
  if (!drawer.open) drawer.showModal();
  drawer.scrollTop = 0;
  const heading = byId(`part-${part}`);
  if (heading && part !== "records") heading.scrollIntoView({ block: "start", behavior: "instant" });
  byId("drawer-h").focus({ preventScroll: true });
}

function detailParts(id, detail) {
  return [
    detail.note ? el("p", { class: "note" }, detail.note) : null,
    detail.facts ? pairs(detail.facts, "numbers") : null,
    ...listPart("source", "Where it is published", detail.source),
    detail.error !== undefined ? el("pre", { class: "error" }, detail.error) : null,
    ...recordsPart(detail),
    ...testsPart(detail.tests),
    ...curvePart(id),
    ...commandsPart(detail),
    ...triedPart(detail.tried),
    ...listPart("settings", "Settings", detail.settings),
    ...listPart("provenance", "Where it was computed", detail.provenance),
  ];
}

function heading(part, text) {
  return el("h3", { id: `part-${part}` }, text);
}

function pairs(values, kind) {
  return el("dl", { class: kind }, ...values.map(([name, value]) =>
    kind === "numbers"
      ? el("div", {}, el("dt", {}, name), el("dd", {}, value))
      : fragment(el("dt", {}, name), el("dd", {}, value))));
}

function fragment(...nodes) {
  const made = document.createDocumentFragment();
  made.append(...nodes);
  return made;
}

function listPart(part, title, values) {
  return values && values.length ? [heading(part, title), pairs(values, "pairs")] : [];
}

function recordsPart(detail) {
  if (!detail.records) return [];
  const commands = unpacked(detail.commands);
  const titles = detail.records.titles.map((title) => el("th", { scope: "col" }, title));
  if (commands.length) titles.push(el("th", { scope: "col" }, "command"));
  const rows = detail.records.rows.map((row, place) => el("tr", {},
    ...row.map((text) => el("td", {}, text)),
    commands[place] ? el("td", {}, copyButton(commands[place], `Copy the command of row ${place + 1}`)) : null));
  return [heading("records", "Records"), el("div", { class: "scroll" },
    el("table", { class: "small" }, el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...rows)))];
}

function testsPart(tests) {
  if (!tests || !tests.length) return [];
  return [heading("tests", "Paired comparisons"), el("div", { class: "tests" },
    ...tests.map((test) => el("div", {},
      el("h4", {}, `Minus ${test.against}`), pairs(test.values, "pairs"))))];
}

function triedPart(tried) {
  if (!tried) return [];
  const rows = tried.rows.map((row, place) => el("tr", place ? {} : { class: "first" },
    ...row.map((text) => el("td", {}, text))));
  const rest = tried.left_out ? `, ${tried.left_out} more below these` : "";
  return [heading("tried", `Chosen on validation from${rest ? " the best of" : ""} ${rows.length}${rest}`),
    el("div", { class: "scroll" }, el("table", { class: "small" },
      el("thead", {}, el("tr", {}, ...tried.titles.map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...rows)))];
}

function curvePart(id) {
  const group = DATA.curves.find((each) => each.lines.some((line) => line.detail === id));
  if (!group) return [];
  const own = group.lines.find((line) => line.detail === id);
  const plain = group.lines.find((line) => line.variant === "baseline");
  const lines = [...new Set([plain, own])].filter(Boolean).map((line) =>
    ({ ...line, tone: line.variant in { baseline: 1, identity: 1 } ? line.variant : "ecg" }));
  const figure = el("figure", { class: "plot" });
  figure.append(drawCurves(lines, "test", Math.min(680, innerWidth - 48)));
  const beside = plain && plain !== own ? ", beside the plain model" : "";
  return [heading("curve", `Test score over training${beside}`), figure];
}

function unpacked(packed) {
  return packed ? packed.middle.map((text) => packed.head + text + packed.tail) : [];
}

function commandsPart(detail) {
  const commands = unpacked(detail.commands);
  if (!commands.length) return [];
  const made = distinct((detail.provenance || [])
    .filter(([name]) => name === "command").map(([, value]) => value));
  const first = commands.length > 1 ? "Compute the first record again" : "Compute it again";
  return [heading("commands", first), command(commands[0]),
    ...(made.length ? [heading("made", "Made by"), ...made.map(command)] : [])];
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
