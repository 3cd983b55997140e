"""Budgets are read as people write them, and the watch keeps them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecg_gnn.advise.budget import (
    OutOfTime,
    Stopwatch,
    format_budget,
    parse_budget,
    round_up,
)
from ecg_gnn.system.checks import InputError
from small_advice import Clock


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1.5m", 90), ("1h30m", 5400), (" 2H ", 7200)],
)
def test_budgets(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "5", "-5m", "5 minutes", "m", "1s2m", "0s", "0.5s", "inf"]
)
def test_no_budgets(text):
    with pytest.raises(InputError, match="'budget' must be "):
        parse_budget(text)


@given(st.integers(1, 10**6))
def test_what_is_written_is_read_again(seconds):
    assert parse_budget(format_budget(seconds)) == seconds


@given(st.floats(1, 10**6))
def test_rounding_up_never_gives_less(seconds):
    rounded = round_up(seconds)
    assert seconds <= rounded <= seconds + 600
    assert rounded % 60 == 0


def test_a_watch_runs_from_when_it_is_made():
    clock = Clock()
    watch = Stopwatch(100, clock)
    clock.now += 40
    assert watch.spent() == 40
    assert 50 < watch.left() < 60  # some is kept for the report
    watch.check()
    clock.now += 60
    with pytest.raises(OutOfTime):
        watch.check()
