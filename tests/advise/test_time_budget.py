"""Budgets are read as people write them, kept, and decide what is cut."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advise.fake_trainer import Clock, whole_plan
from ecg_gnn.advise.next_steps import round_up
from ecg_gnn.advise.time_budget import (
    Cost,
    OutOfTime,
    Speed,
    Stopwatch,
    choose_plan,
    format_budget,
    parse_budget,
)
from ecg_gnn.system.checks import InputError


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


# --- What is cut when time is short ---------------------------------------------------


def speed(step=0.01, embed=0.005, search=0.1, shared=("bgrl", "features")):
    return Speed(
        plain=Cost(0, step),
        evolved=Cost(0, 2 * step),
        embeddings={
            "mlp": Cost(search, embed),
            "bgrl": Cost(search, embed),
            "features": Cost(search, 0),
        },
        shared=frozenset(shared),
    )


def test_seconds_of_a_plan_by_hand():
    # Per split: 100 steps plain, 8 × 100 with a graph, six searches, MLP once; BGRL
    # once in all.
    plan = whole_plan(steps=100)
    found = speed(step=1, embed=0.1, search=2).seconds(plan, 3)
    assert found == pytest.approx(3 * (100 + 8 * 200 + 6 * 2 + 10) + 10)


def test_nothing_is_cut_when_there_is_time():
    plan = whole_plan()
    assert choose_plan(plan, speed(), 1e6) == plan


def test_nothing_fits_still_leaves_a_plan():
    plan = choose_plan(whole_plan(), speed(), -5.0)
    assert [(c.embedding, c.k) for c in plan.candidates] == [("mlp", 10)]
    assert plan.steps == 75
    assert choose_plan(whole_plan(steps=30), speed(), 0.0).steps == 20
    assert choose_plan(whole_plan(steps=7), speed(), 0.0).steps == 7


def test_one_split_is_enough_where_there_is_one():
    whole = whole_plan(splits=1)
    assert choose_plan(whole, speed(), 1.3 * speed().seconds(whole, 1)) == whole


def test_what_fits_exactly_is_not_risked():
    whole = whole_plan()
    assert choose_plan(whole, speed(), speed().seconds(whole, 5)) != whole


def test_steps_are_given_up_before_candidates():
    whole, at = whole_plan(), speed()
    just_short = at.seconds(whole, 5) - 0.001
    plan = choose_plan(whole, at, just_short)
    assert (plan.steps, plan.candidates) == (150, whole.candidates)


def test_the_dearest_embedding_is_given_up_before_the_others():
    costs = {"mlp": Cost(0, 0.1), "bgrl": Cost(0, 1.0), "features": Cost(0, 0)}
    at = replace(speed(), embeddings=costs)
    whole = whole_plan(steps=200)
    cheap = [c for c in whole.candidates if c.k == 10 and c.embedding != "bgrl"]
    wanted = replace(whole, steps=100, candidates=tuple(cheap))
    assert choose_plan(whole, at, 1.3 * at.seconds(wanted, 5)) == wanted
    alone = whole_plan(embeddings=("bgrl",), ks=(10,))
    assert choose_plan(alone, at, 0.0).candidates == alone.candidates


@given(
    left=st.floats(0, 3000),
    more=st.floats(0, 3000),
    step=st.floats(1e-5, 1),
    embed=st.floats(0, 1),
    search=st.floats(0, 30),
    splits=st.integers(1, 10),
)
def test_more_time_never_gives_less(left, more, step, embed, search, splits):
    whole = whole_plan(splits=splits)
    at = speed(step=step, embed=embed, search=search)
    short, long = (choose_plan(whole, at, time) for time in (left, left + more))
    assert short.steps <= long.steps <= whole.steps
    assert set(short.candidates) <= set(long.candidates) <= set(whole.candidates)
    if at.seconds(short, 1) > left:  # only where nothing fits at all
        assert len(short.candidates) == 1
