"""The budget is kept, and whenever it ends all contenders have the same splits."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advise.fake_trainer import Clock, run_fake, whole_plan
from ecg_gnn.advise.question import PLAIN, make_candidates
from ecg_gnn.advise.rounds import Trainer
from ecg_gnn.advise.time_budget import OutOfTime, Stopwatch
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study import run
from small_runs import resolved, small_board, small_config, threads


def check_paired(advice):
    """Every contender on the same splits, each split once, in the planned order."""
    splits = {c: [r[c].split for r in advice.rounds] for c in advice.rounds[0]}
    assert set(splits) == set(advice.plan.contenders)
    expected = list(advice.plan.splits[: len(advice.rounds)])
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
    advice, trainer = run_fake(budget=budget, plan=plan, **options)
    assert (
        trainer.watch.spent() <= budget
    )  # a tick is a second, as is what is kept back
    if advice.rounds:
        check_paired(advice)
    all_done = len(advice.rounds) == splits
    assert (advice.stop is None) == all_done
    if advice.stop is None and advice.plan.candidates != plan.candidates:
        # What was cut would hardly have fitted.
        assert advice.speed.seconds(plan, min(5, splits)) > 0.5 * budget


def test_with_enough_time_everything_is_trained():
    told = []
    advice, trainer = run_fake(
        budget=1e6, on_round=lambda *said: told.append((len(said[0]), *said[1:]))
    )
    assert advice.plan == advice.question.whole
    assert advice.stop is None
    assert told == [(9, done, 10) for done in range(1, 11)]
    kept = [one for one in trainer.trained if one[3]]
    assert len(kept) == 90
    assert {steps for _, _, steps, _ in kept} == {300}


def test_short_trainings_are_timed_and_thrown_away():
    advice, trainer = run_fake(budget=1e6)
    probes = [one for one in trainer.trained if not one[3]]
    assert {steps for _, _, steps, _ in probes} == {1, 2, 40}
    assert {contender.k for contender, *_ in probes} == {None, 10}
    speed = advice.speed
    assert speed.plain.per_step == pytest.approx(0.01)
    assert speed.evolved.per_step == pytest.approx(0.01)
    assert speed.embeddings["mlp"].per_step == pytest.approx(0.005)
    assert speed.embeddings["mlp"].fixed == pytest.approx(0.1)
    assert speed.embeddings["features"].per_step == pytest.approx(0)
    assert speed.shared == {"bgrl", "features"}


def test_where_steps_are_slow_fewer_are_timed():
    _, trainer = run_fake(budget=1000.0, step=1.0)
    assert {steps for _, _, steps, keep in trainer.trained if not keep} == {1, 2, 12}


def test_the_estimate_is_what_it_takes():
    advice, trainer = run_fake(budget=1e6)
    before = sum(
        0.1 * (contender.k is not None)
        + steps * (0.01 + 0.005 * (contender.embedding in ("mlp", "bgrl")))
        for contender, _, steps, keep in trainer.trained
        if not keep
    )
    estimate = advice.speed.seconds(advice.question.whole, 10)
    random_searches = 10 * 0.1  # as good as free in reality
    assert trainer.watch.spent() - before == pytest.approx(estimate + random_searches)


def test_a_split_that_would_not_fit_is_not_begun():
    advice, trainer = run_fake(budget=130.0)
    assert advice.stop == "time"
    check_paired(advice)
    begun = {split for _, split, _, keep in trainer.trained if keep}
    assert begun == {records[PLAIN].split for records in advice.rounds}


def test_time_may_end_while_it_is_still_being_told():
    advice, _ = run_fake(budget=5.0, step=10.0)
    assert (advice.speed, advice.stop) == (None, "time")
    assert advice.rounds == ()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 120))
def test_interrupted_whenever(trainings):
    advice, _ = run_fake(budget=1e6, interrupt=trainings)
    probing = 2 + 2 * 4
    finished = min(10, max(0, trainings - probing) // 9)
    assert len(advice.rounds) == finished
    assert (advice.stop == "interrupted") == (finished < 10)
    if finished:
        check_paired(advice)


# --- Real trainings -------------------------------------------------------------------


def make_trainer(tmp_path, watch=None, **options):
    dataset = small_board()
    cache, watch = EmbeddingCache(tmp_path), watch or Stopwatch(1000, Clock())
    return Trainer(dataset, resolved(dataset, "mlp"), cache, watch, **options)


def test_scores_are_those_of_a_run(tmp_path):
    (mlp,) = make_candidates(("mlp",), (3,))
    with threads(1):
        report = run(small_config("mlp", splits=(1,)))
        train = make_trainer(tmp_path)
        identity, _ = whole_plan().controls_of(mlp)
        found = [train(each, 1, 4) for each in (PLAIN, mlp, identity)]
    assert [record.test for record in found] == [
        record.test for record in report.records
    ]
    assert [record.val for record in found] == [record.val for record in report.records]


def test_steps_and_k_are_the_contenders(tmp_path):
    (five,) = make_candidates(("features",), (5,))
    record = make_trainer(tmp_path)(five, 0, 2)
    assert len(record.losses) == 2
    assert record.evolved_statistics[0]["num_edges"] == 5 * 64


def test_only_what_is_to_be_kept_is_kept(tmp_path):
    (mlp,) = make_candidates(("mlp",), (3,))
    train = make_trainer(tmp_path)
    train(mlp, 0, 1, keep=False)
    assert not any(tmp_path.iterdir())
    train(mlp, 0, 1)
    assert any(tmp_path.iterdir())


def test_what_serves_all_splits():
    names = ("mlp", "bgrl", "features", "mlp+bgrl", "bgrl,features")
    advice, _ = run_fake(budget=1e6, plan=whole_plan(embeddings=names, ks=(3,)))
    assert advice.speed.shared == {"bgrl", "features", "bgrl,features"}


@pytest.mark.parametrize("name", ["mlp", "bgrl", "features"])
def test_training_stops_when_the_time_is_up(tmp_path, monkeypatch, name):
    clock = Clock()
    watch = Stopwatch(10, clock)
    shown = []

    def display(title, work):
        shown.append((title, work))
        return lambda done, total, score: shown.append(done)

    (contender,) = make_candidates((name,), (3,))
    train = make_trainer(tmp_path, watch, display=display)
    # Progress is told once a second: let every look at the time be a second later.
    monkeypatch.setattr("time.perf_counter", itertools.count(0, 2).__next__)
    clock.now += 9.5
    with pytest.raises(OutOfTime):
        train(contender, 0, 50)
    assert shown[0][0] == f"split 0 · ECG ({name}, k = 3)"
    assert shown[-1] == 1  # the first look was enough
