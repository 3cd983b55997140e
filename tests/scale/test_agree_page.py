"""The comparison of batches with full batches: its verdict, and its page."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale" / "agree.py"


@pytest.fixture(scope="module")
def agree():
    spec = importlib.util.spec_from_file_location("agree", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("batches", "reseeded", "expected"),
    [
        ([0.81, 0.79, 0.80], [0.80, 0.80, 0.80], True),  # within two standard errors
        ([0.77, 0.77, 0.77], [0.80, 0.80, 0.80], False),
        ([0.77, 0.77, 0.77], [0.76, 0.80, 0.84], True),  # seeds differ by more
    ],
)
def test_verdict(agree, batches, reseeded, expected):
    found = agree.verdict([0.8, 0.8, 0.8], batches, reseeded)
    assert found["agree"] is expected
    assert found["difference"] == pytest.approx(sum(batches) / 3 - 0.8)


def test_the_page_is_what_the_records_say(agree):
    if not (found := agree.records()):
        pytest.skip("nothing was recorded")
    written = (SCRIPT.parent / "agree.md").read_text(encoding="utf-8")
    assert written == agree.page(found)
