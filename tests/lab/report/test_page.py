"""The report's file: whole, the same every time, and safe whatever names say."""

import builtins
import re
from html.parser import HTMLParser

import pytest

from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import MissingExtraError
from ecg_gnn_lab.report import gather, render_report
from ecg_gnn_lab.tables import StudyTables
from reported_studies import HOSTILE, fill


class Elements(HTMLParser):
    """Names and attributes of all elements, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = fill(tmp_path_factory.mktemp("store") / "s.sqlite", hostile=True)
    with Store.open(path) as store:
        return gather(StudyTables(store))


def test_names_cannot_become_markup(content):
    page = render_report(content)
    assert HOSTILE not in page
    scripts = [attrs for tag, attrs in Elements(page).found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "details"}, {}]
    data = re.search(r'id="details">(.*?)</script>', page, re.DOTALL)[1]
    assert "<" not in data
    assert "\u2028" not in data


def test_nothing_is_loaded_from_elsewhere(content):
    page = render_report(content)
    for tag, attrs in Elements(page).found:
        assert tag not in {"link", "iframe", "object"}
        assert attrs.get("src", "data:").startswith("data:")
        assert attrs.get("href", "#").startswith("#")
        assert not [name for name in attrs if name.startswith("on")]
    assert "@import" not in page
    assert "://" not in page


def test_only_the_pages_own_script_may_run(content):
    (policy,) = [
        attrs["content"]
        for tag, attrs in Elements(render_report(content)).found
        if tag == "meta" and "http-equiv" in attrs
    ]
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/]{43}='$", policy)


def test_the_page_is_whole_small_and_the_same_again(tmp_path):
    store_path = fill(tmp_path / "s.sqlite")
    with Store.open(store_path) as store:
        first = render_report(gather(StudyTables(store)))
        assert first == render_report(gather(StudyTables(store, "by-hand")))
    assert len(first.encode()) < 300_000
    assert first.rstrip().endswith("</html>")


def test_without_jinja_one_line_names_the_extra(content, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "jinja2":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"ecg-gnn\[report\]"):
        render_report(content)
