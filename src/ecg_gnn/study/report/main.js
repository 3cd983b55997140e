// Puts everything together.

function setUpTheme() {
  const root = document.documentElement;
  const remembered = () => { try { return localStorage.getItem("ecg-theme"); } catch { return null; } };
  if (remembered()) root.dataset.theme = remembered();
  byId("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const now = root.dataset.theme || system;
    root.dataset.theme = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("ecg-theme", root.dataset.theme); } catch { /* not kept */ }
  });
}

function setUpDrawer() {
  byId("drawer-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
  for (const button of document.querySelectorAll("button.tile, button.side")) {
    button.addEventListener("click", () => openDetail(button.dataset.detail, button.dataset.part));
  }
}

setUpTheme();
setUpDrawer();
for (const table of document.querySelectorAll("table.data")) setUpTable(table);
setUpEffects();
setUpCurves();
setUpHomophily();
setUpLeaderboard();
// The browser looked for the link's place before the plots above it were drawn.
if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
addEventListener("scroll", hideTip, { passive: true });
// Notes are folded on a screen and open on paper.
addEventListener("beforeprint", () => {
  for (const notes of document.querySelectorAll("details")) notes.open = true;
});
