"""The page in a real browser, headless: sort, filter, open, switch, print, no error."""

import itertools

import pytest

from browser import WIDER, Browser, find_browser
from documented import ROOT
from ecg_gnn.study.store import Store
from ecg_gnn_lab.report import gather, render_report
from ecg_gnn_lab.tables import StudyTables
from reported_studies import HOSTILE, fill

SHOWN = "[...document.querySelectorAll('#results-table tbody tr:not([hidden])')]"
TESTS = f"{SHOWN}.map(row => parseFloat(row.cells[4].textContent))"
SORT = "document.querySelectorAll('#results-table .sort')[4].click()"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    binary = find_browser()
    if binary is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with Browser(binary, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, hostile in (("plain", False), ("hostile", True)):
        path = fill(folder / f"{name}.sqlite", hostile=hostile)
        with Store.open(path) as store:
            page = render_report(gather(StudyTables(store)))
            (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture
def page(browser, pages):
    """The report, freshly opened; at the end nothing has gone wrong in it."""
    browser.problems.clear()
    browser.requests.clear()
    browser.open(pages / "plain.html")
    yield browser
    assert browser.problems == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)


def test_sort(page):
    before = page.run(TESTS)
    page.run(SORT)
    assert page.run(TESTS) == sorted(before, reverse=True)
    heading = "document.querySelectorAll('#results-table th')[4]"
    assert page.run(f"{heading}.getAttribute('aria-sort')") == "descending"
    page.run(SORT)
    assert page.run(TESTS) == sorted(before)
    page.run(SORT)
    assert page.run(TESTS) == before
    # What has no number stays last, whichever way.
    page.run("document.querySelectorAll('#results-table .sort')[7].click()")
    last = page.run(f"{SHOWN}.at(-1).cells[7].textContent")
    assert last == "—"


def test_filter(page):
    everything = page.run(f"{SHOWN}.length")
    page.run(
        "{const box = document.querySelector('#results input[type=search]');"
        "box.value = 'ecg SAGE'; box.dispatchEvent(new Event('input'))}"
    )
    texts = page.run(f"{SHOWN}.map(row => row.textContent)")
    assert len(texts) == 2
    assert all("sage" in text and "ECG" in text for text in texts)
    count = page.run("document.querySelector('#results .count').textContent")
    assert count == f"2 of {everything} rows"
    page.run(
        "{const choice = document.querySelector('#results select');"
        "choice.value = 'own-graph'; choice.dispatchEvent(new Event('change'))}"
    )
    assert page.run(f"{SHOWN}.length") == 1


def test_a_number_opens_its_records(page):
    page.run(f"{SHOWN}[1].cells[4].querySelector('button').click()")
    assert page.run("document.getElementById('drawer').open")
    assert page.run("document.getElementById('drawer-h').textContent") == "ECG (mlp)"
    body = "document.getElementById('drawer-body')"
    assert page.run(f"{body}.querySelectorAll('.small')[0].rows.length") == 5
    text = page.run(f"{body}.textContent")
    assert "Minus baseline" in text
    assert "ecg-gnn run --dataset minesweeper" in text
    page.run(f"{body}.querySelector('.command .copy').click()")
    page.wait(f"{body}.querySelector('.command .copy').textContent === 'copied'")
    page.press("Escape", 27)
    page.wait("!document.getElementById('drawer').open")


def test_by_keyboard_alone(page):
    page.run(f"{SHOWN}[1].querySelector('.cell').focus()")
    page.press("ArrowRight", 39)
    focused = "document.activeElement.closest('td').cellIndex"
    assert page.run(focused) == 4
    page.press("ArrowDown", 40)
    assert page.run("document.activeElement.closest('tr').rowIndex") == 3
    page.press("Enter", 13)
    page.wait("document.getElementById('drawer').open")


def test_every_detail_opens(page):
    opened = page.run(
        "[...document.querySelectorAll('tr[data-detail]')].map(row => {"
        "row.cells[0].click(); return document.getElementById('drawer-h').textContent})"
    )
    assert len(opened) > 40
    assert all(opened)


def test_pictures_are_drawn_and_follow_the_theme(page, pages):
    shown = (
        "[...document.querySelectorAll('.plot img')]"
        ".map(each => each.getBoundingClientRect().height)"
    )
    heights = page.run(shown)
    assert len(heights) == 3
    assert min(heights) > 100
    inked = "getComputedStyle(document.querySelector('.plot img')).filter"
    light = page.run(inked)
    page.open(pages / "plain.html", scheme="dark")
    assert page.run(inked) != light


def test_leaderboard(page):
    side = "document.querySelectorAll('#leaderboard .side')"
    assert page.run(f"{side}.length") == 3  # ours twice, one published
    assert "CSNN paper" in page.run(f"{side}[1].title")
    page.run(f"{side}[0].click()")
    assert page.run("document.getElementById('drawer').open")
    page.press("Escape", 27)
    rows = "[...document.querySelectorAll('#leaderboard-table tbody tr')]"
    scores = f"{rows}.map(row => parseFloat(row.cells[2].textContent))"
    before = [score for score in page.run(scores) if score is not None]
    page.run("document.querySelectorAll('#leaderboard-table .sort')[2].click()")
    after = [score for score in page.run(scores) if score is not None]
    assert after == sorted(before, reverse=True)


def test_theme(page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.run("document.getElementById('theme').click()")
    dark = page.run(colour)
    assert light != dark
    page.run("document.getElementById('theme').click()")
    assert page.run(colour) == light
    page.run("localStorage.clear()")


def test_the_system_decides_until_asked(page, pages):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.open(pages / "plain.html", scheme="dark")
    assert page.run(colour) != light


@pytest.mark.parametrize("width", [360, 390, 768, 1280, 1400])
def test_nothing_is_wider_than_the_page(page, pages, width):
    page.open(pages / "plain.html", width=width, phone=width < 500)
    assert page.run(WIDER) == []
    assert page.run("document.documentElement.scrollWidth") <= width


def test_the_decisive_columns_are_seen_without_scrolling(page):
    page.open(ROOT / "results" / "report.html", width=1400)
    titles = "[...document.querySelectorAll('#results-table th')]"
    seen = page.run(
        f"{titles}.filter(each => each.getBoundingClientRect().right <= 1400)"
        ".map(each => each.textContent)"
    )
    assert {"− baseline [95% CI]", "− identity [95% CI]"} <= set(seen)


@pytest.mark.parametrize("width", [390, 1400])
def test_no_table_is_cut(page, width):
    page.open(ROOT / "results" / "report.html", width=width, phone=width < 500)
    cut = page.run(
        "[...document.querySelectorAll('.scroll')]"
        ".filter(each => each.scrollWidth > each.clientWidth)"
        ".map(each => each.innerText.slice(0, 80))"
    )
    assert cut == []


def test_a_long_table_opens_on_one_dataset(page):
    page.open(ROOT / "results" / "report.html", width=1400)
    assert page.run(f"new Set({SHOWN}.map(row => row.cells[0].textContent)).size") == 1
    page.run(
        "{const choice = document.querySelector('#results select');"
        "choice.value = ''; choice.dispatchEvent(new Event('change'))}"
    )
    assert page.run(f"new Set({SHOWN}.map(row => row.cells[0].textContent)).size") > 1


def test_a_label_is_not_repeated_below_itself(page):
    shown = f"{SHOWN}.map(row => [row.cells[1].textContent, row.cells[1].className])"
    rows = page.run(shown)
    for (above, _), (name, marked) in itertools.pairwise(rows):
        assert ("same" in marked) == (name == above)


def test_prints(page):
    assert page.call("Page.printToPDF")["data"]


def test_hostile_names_do_nothing(browser, pages):
    browser.problems.clear()
    browser.open(pages / "hostile.html")
    assert browser.run("document.scripts.length") == 2
    names = browser.run(f"{SHOWN}.map(row => row.cells[0].textContent)")
    assert HOSTILE in names
    browser.run(f"{SHOWN}.at(-1).cells[0].click()")
    shown = browser.run("document.getElementById('drawer-sub').textContent")
    assert shown.startswith(HOSTILE)
    assert browser.problems == []


def test_a_link_into_the_page_arrives_there(page, pages):
    top = "document.getElementById('homophily').getBoundingClientRect().top"
    assert page.run(top) > 1000
    page.call("Page.navigate", url="about:blank")  # else it would only be scrolled
    page.open(pages / "plain.html", place="#homophily")
    bar = page.run("document.querySelector('.top').getBoundingClientRect().bottom")
    assert 0 <= page.run(top) <= 2 * bar
