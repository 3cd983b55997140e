"""The guide builds without a warning, is whole, and needs nothing from a network."""

import importlib.util
import re
import subprocess
import sys

import pytest
import typer
import yaml

from browser import WIDER, Browser, find_browser
from documented import ROOT
from ecg_gnn.cli.verbs import app

DOCS = ROOT / "docs"
SITE_ADDRESS = re.compile(r"""(?:src|href)=["'](?:https?:)?//([^/"']+)""")
CUT = """
[...document.querySelectorAll(".md-typeset__scrollwrap")]
    .filter((each) => each.scrollWidth > each.clientWidth)
    .map((each) => each.innerText.slice(0, 80))
"""
"""Tables of which the page shows only a part."""
CREDITED = {"squidfunk.github.io"}
"""A link at the foot of every page, to click on; nothing is loaded from there."""


def pages_of(nav):
    for part in nav:
        for value in part.values():
            yield from pages_of(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    shown = set(pages_of(yaml.safe_load(text)["nav"]))
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert written <= shown


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the guide needs pip install 'ecg-gnn[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_site_is_whole(site):
    for name in ("index", "guide/own-data", "guide/method", "guide/api", "deviations"):
        assert (site / f"{name}.html").stat().st_size > 5_000
    reference = (site / "guide/api.html").read_text()
    assert 'id="ecg_gnn.ECGClassifier"' in reference
    assert "<math" in reference
    assert not re.search(r":(func|class|math):|\.\. \w+::", reference)
    assert "setting(" not in reference  # defaults, and below them what settings mean
    assert "dropped at random in every layer" in reference
    assert "GridSearchCV" in (site / "guide/examples.html").read_text()


def test_the_command_line_is_on_its_page(site):
    page = (site / "guide/cli.html").read_text()
    for verb, command in typer.main.get_command(app).commands.items():
        for name in (verb, *(f"{verb}-{each}" for each in inner_commands(command))):
            assert f'id="ecg-gnn-{name}"' in page
        for each in (command, *inner_commands(command).values()):
            for parameter in each.params:
                if parameter.param_type_name == "option":
                    assert f">{parameter.opts[0]}</span></code>" in page


def inner_commands(command):
    return getattr(command, "commands", {})


def test_site_loads_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        assert set(SITE_ADDRESS.findall(path.read_text())) <= CREDITED, path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    binary = find_browser()
    if binary is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with Browser(binary, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("width", [390, 1400])
def test_no_page_is_wider_than_the_screen(site, browser, width):
    shown = pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    for page in shown:
        path = site / page.replace("README.md", "index.md").replace(".md", ".html")
        browser.open(path, width=width, phone=width < 500)
        assert browser.run(WIDER) == [], page
        assert browser.run("document.documentElement.scrollWidth") <= width, page
        if width > 1000:  # on a phone, wide tables scroll
            assert browser.run(CUT) == [], page
        broken = "[...document.images].filter(each => !each.naturalWidth).length"
        assert browser.run(broken) == 0, page
    assert browser.problems == []


def test_search_works_in_a_folder_opened_from_a_disk(site, browser):
    browser.open(site / "guide" / "faq.html")
    browser.run(
        "{const box = document.querySelector('input[name=query]'); box.focus();"
        "box.value = 'PageRank';"
        "box.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))}"
    )
    found = "[...document.querySelectorAll('.md-search-result__item a')]"
    browser.wait(f"{found}.length > 0")
    links = browser.run(f"{found}.map(each => each.pathname)")
    assert any(link.endswith("guide/own-data.html") for link in links)
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)
    assert browser.problems == []


def load_tool(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "tools")
    spec = importlib.util.spec_from_file_location(name, DOCS / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_can_be_drawn(monkeypatch):
    figure_class = pytest.importorskip("matplotlib.figure").Figure
    tool = load_tool("pictures", monkeypatch)
    for name in tool.PICTURES:
        assert (DOCS / "images" / f"{name}.png").exists()
    steps = tool.three_steps(figure_class)
    titles = [axes.get_title() for axes in steps.axes]
    before, after = (int(re.search(r"(\d+)%", titles[i])[1]) for i in (0, 2))
    assert before < 15 < 80 < after  # what the page says of the picture
    tool.parallel(figure_class)
    sweep = tool.draw_sweep(
        figure_class, (0.1, 0.5), num_nodes=60, num_splits=2, steps=2
    )
    assert [len(axes.get_lines()) for axes in sweep.axes] == [4, 4]
