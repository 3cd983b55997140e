"""The budget is kept, and whenever it ends all contenders have the same splits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.advise.contenders import PLAIN
from small_advice import run_laboratory, whole_plan


def check_paired(rounds):
    """Every contender on the same splits, each split once, in the planned order."""
    splits = {c: [r.split for r in rounds.of(c)] for c in rounds.records[0]}
    assert set(splits) == set(rounds.plan.contenders)
    expected = list(rounds.plan.splits[: len(rounds.records)])
    assert all(found == expected for found in splits.values())


@settings(deadline=None, max_examples=60)
@given(
    budget=st.floats(10, 2000),
    step=st.floats(1e-4, 0.5),
    embed=st.floats(0, 0.2),
    search=st.floats(0, 5),
    splits=st.integers(1, 10),
)
def test_the_budget_is_kept(budget, step, embed, search, splits):
    plan = whole_plan(splits=splits)
    options = {"step": step, "embed": embed, "search": search}
    rounds, lab = run_laboratory(budget, plan, **options)
    assert lab.watch.spent() <= budget  # a tick is a second, as is what is kept back
    if rounds.records:
        check_paired(rounds)
    all_done = len(rounds.records) == splits
    assert (rounds.stop is None) == all_done
    if rounds.stop is None and rounds.plan.candidates != plan.candidates:
        # What was cut would hardly have fitted.
        assert rounds.speed.seconds(plan, min(5, splits)) > 0.5 * budget


def test_with_enough_time_everything_is_trained():
    told = []
    rounds, lab = run_laboratory(
        1e6, on_round=lambda *said: told.append((len(said[0]), *said[1:]))
    )
    assert rounds.plan == rounds.whole
    assert rounds.stop is None
    assert told == [(9, done, 10) for done in range(1, 11)]
    kept = [one for one in lab.trained if one[3]]
    assert len(kept) == 90
    assert {steps for _, _, steps, _ in kept} == {300}


def test_short_trainings_are_timed_and_thrown_away():
    rounds, lab = run_laboratory(1e6)
    probes = [one for one in lab.trained if not one[3]]
    assert {steps for _, _, steps, _ in probes} == {1, 2, 40}
    assert {contender.k for contender, *_ in probes} == {None, 10}
    speed = rounds.speed
    assert speed.plain.per_step == pytest.approx(0.01)
    assert speed.evolved.per_step == pytest.approx(0.01)
    assert speed.embeddings["mlp"].per_step == pytest.approx(0.005)
    assert speed.embeddings["mlp"].fixed == pytest.approx(0.1)
    assert speed.embeddings["features"].per_step == pytest.approx(0)
    assert speed.shared == {"bgrl", "features"}


def test_where_steps_are_slow_fewer_are_timed():
    _, lab = run_laboratory(1000.0, step=1.0)
    assert {steps for _, _, steps, keep in lab.trained if not keep} == {1, 2, 12}


def test_the_estimate_is_what_it_takes():
    rounds, lab = run_laboratory(1e6)
    before = sum(
        0.1 * (contender.k is not None)
        + steps * (0.01 + 0.005 * (contender.embedding in ("mlp", "bgrl")))
        for contender, _, steps, keep in lab.trained
        if not keep
    )
    estimate = rounds.speed.seconds(rounds.whole, 10)
    random_searches = 10 * 0.1  # as good as free in reality
    assert lab.watch.spent() - before == pytest.approx(estimate + random_searches)


def test_a_split_that_would_not_fit_is_not_begun():
    rounds, lab = run_laboratory(130.0)
    assert rounds.stop == "time"
    check_paired(rounds)
    begun = {split for _, split, _, keep in lab.trained if keep}
    assert begun == {record.split for record in rounds.of(PLAIN)}


def test_time_may_end_while_it_is_still_being_told():
    rounds, _ = run_laboratory(5.0, step=10.0)
    assert (rounds.plan, rounds.speed, rounds.stop) == (None, None, "time")
    assert rounds.records == ()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 120))
def test_interrupted_whenever(trainings):
    rounds, _ = run_laboratory(1e6, interrupt=trainings)
    probing = 2 + 2 * 4
    finished = min(10, max(0, trainings - probing) // 9)
    assert len(rounds.records) == finished
    assert (rounds.stop == "interrupted") == (finished < 10)
    if finished:
        check_paired(rounds)
