"""The search as a whole: what it keeps, what it never reads, how it goes on."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from ecg_gnn.ensemble import contest, scoring, tournament
from ecg_gnn.ensemble.candidates import Candidate, candidates
from ecg_gnn.ensemble.certainty import (
    Scaling,
    class_sets,
    fit_scaling,
    fit_slope,
    sorted_errors,
    usual_error,
)
from ecg_gnn.ensemble.contest import blend_weights
from ecg_gnn.ensemble.leaderboard import few_decide, report, verdict
from ecg_gnn.ensemble.members import fold_count
from ecg_gnn.ensemble.scoring import SCORES, choose_metric, interval
from ecg_gnn.ensemble.tournament import search
from ecg_gnn.ensemble.weighted import read_ensemble, write_ensemble
from ecg_gnn.system.checks import InputError

CHEAP = ["linear", "linear, neighbours and labels", "MLP"]


@pytest.fixture
def cheap(monkeypatch):
    """Three candidates only, and no second seeds: the same whatever the time."""

    def few(seed=0):
        return [each for each in candidates(seed) if each.name in CHEAP]

    monkeypatch.setattr(tournament, "candidates", few)
    monkeypatch.setattr(tournament, "_MOST_DRAWS", 0)


@pytest.fixture
def known(graph):
    return (graph.train_masks[0] | graph.val_masks[0]).numpy()


def run(graph, known, **options):
    options = {"budget": 60, **options}
    y = options.pop("y", graph.y.numpy())
    classes = options.pop("num_classes", graph.num_classes)
    return search(graph.x, graph.edge_index, y, classes, known, **options)


@pytest.mark.parametrize("num_classes", [2, 0])
def test_test_labels_change_nothing(cheap, graph, known, num_classes):
    y = graph.y.numpy() if num_classes else graph.x[:, 0].double().numpy()
    found = [
        run(graph, known, y=each, num_classes=num_classes).ensemble
        for each in (y, np.where(known, y, 1 - y))
    ]
    np.testing.assert_array_equal(*(each.probabilities() for each in found))
    np.testing.assert_array_equal(*(each.target.values for each in found))


def test_a_training_label_changes_something(cheap, graph, known):
    y = graph.y.numpy().copy()
    node = np.flatnonzero(known)[0]
    first = run(graph, known).ensemble.probabilities()
    y[node] = 1 - y[node]
    assert not np.array_equal(first, run(graph, known, y=y).ensemble.probabilities())


def test_it_is_read_back_as_it_was(cheap, graph, known, tmp_path):
    ensemble = run(graph, known).ensemble
    described = write_ensemble(tmp_path, ensemble)
    again = read_ensemble(tmp_path, described, graph.x, graph.edge_index)
    np.testing.assert_array_equal(again.probabilities(), ensemble.probabilities())
    grown = again.probabilities(graph.x[:2], graph.edge_index[:, :0])
    assert grown.shape == (graph.num_nodes + 2, 2)
    np.testing.assert_allclose(grown.sum(axis=1), 1)
    with pytest.raises(InputError, match="must be unchanged since"):
        read_ensemble(tmp_path, described | {"sha256": "0"}, graph.x, graph.edge_index)


def test_a_member_that_does_not_fit_is_refused(cheap, graph, known, tmp_path):
    described = write_ensemble(tmp_path, run(graph, known).ensemble)
    described["members"][0]["state"] = {}
    with pytest.raises(InputError, match="members"):
        read_ensemble(tmp_path, described, graph.x, graph.edge_index)


def test_numbers(cheap, graph, known, tmp_path):
    values = 5 + 3 * graph.x[:, 0].double().numpy()
    found = run(graph, known, y=values, num_classes=0)
    said = found.ensemble.probabilities()
    assert SCORES["r2"].function(values[~known], said[~known]) > 0.8
    described = write_ensemble(tmp_path, found.ensemble)
    again = read_ensemble(tmp_path, described, graph.x, graph.edge_index)
    np.testing.assert_array_equal(again.probabilities(), said)
    hidden = np.where(known, values, np.nan)
    other = run(graph, known, y=hidden, num_classes=0).ensemble.probabilities()
    np.testing.assert_array_equal(other, said)


def test_single_keeps_the_best(cheap, graph, known):
    found = run(graph, known, single=True)
    (share,) = found.ensemble.shares
    assert share.weight == 1
    assert share.name == found.entries[0].name


@pytest.mark.parametrize("single", [False, True])
def test_a_rare_class_is_said_where_macro_f1_counts(cheap, single, tmp_path):
    """The multipliers are kept, the probabilities stay, and all scores agree."""
    generator = np.random.default_rng(0)
    y = (np.arange(1400) % 10 == 0).astype(int)
    rows = generator.normal(size=(1400, 2)) + 0.7 * y[:, None]
    edges = torch.from_numpy(generator.integers(0, 1400, (2, 1400)))
    x, known = torch.from_numpy(rows).float(), generator.random(1400) < 0.75
    given = x, edges, y, 2, known
    found = search(*given, metric="f1-macro", budget=60, single=single)
    ensemble = found.ensemble
    assert ensemble.multipliers[1] > ensemble.multipliers[0]
    described = write_ensemble(tmp_path, ensemble)
    again = read_ensemble(tmp_path, described, x, edges)
    assert again.multipliers == ensemble.multipliers
    said = ensemble.probabilities()[~known]
    judged = SCORES["f1-macro"].function(y[~known], said * again.multipliers)
    assert report(found, y, ~known)["test"] == pytest.approx(judged)
    del described["multipliers"]  # as in older models
    assert read_ensemble(tmp_path, described, x, edges).multipliers == (1.0,)
    for wrong in ([], [1.0, 1.0, 1.0], [1.0, -1.0], [float("nan"), 1.0]):
        described["multipliers"] = wrong
        with pytest.raises(InputError, match="members"):
            read_ensemble(tmp_path, described, x, edges)


def test_a_killed_search_goes_on(cheap, graph, known, monkeypatch, tmp_path):
    first = run(graph, known, work=tmp_path)

    def refuse(seed=0):
        def fit(job):
            raise AssertionError("trained again")

        return [
            Candidate(each.name, fit, each.reads)
            for each in candidates(seed)
            if each.name in CHEAP
        ]

    monkeypatch.setattr(tournament, "candidates", refuse)
    again = run(graph, known, work=tmp_path)
    expected = first.ensemble.probabilities()
    np.testing.assert_array_equal(again.ensemble.probabilities(), expected)


def test_an_interruption_keeps_what_is_there(cheap, graph, known, monkeypatch):
    def interrupted(seed=0):
        def fit(job):
            raise KeyboardInterrupt

        return [*candidates(seed)[:1], Candidate("never", fit)]

    monkeypatch.setattr(tournament, "candidates", interrupted)
    found = run(graph, known)
    assert found.interrupted
    assert [share.name for share in found.ensemble.shares] == ["linear"]


@dataclass(frozen=True, eq=False)
class Unsure:
    """A member whose probabilities are all nearly the same."""

    inner: Any
    kind = "linear"

    def predict(self, *given):
        return Scaling(0.1).probabilities(self.inner.predict(*given))


def test_an_unsure_member_weighs_what_it_would_if_it_were_sure(
    cheap, graph, known, monkeypatch
):
    first, *others = [each for each in candidates() if each.name in CHEAP]

    def unsure(job):
        member, out = first.train(job)
        return Unsure(member), Scaling(0.1).probabilities(out)

    sure = run(graph, known).ensemble
    monkeypatch.setattr(
        tournament, "candidates", lambda _: [replace(first, fit=unsure), *others]
    )
    found = run(graph, known).ensemble
    assert [share.name for share in found.shares] == [
        share.name for share in sure.shares
    ]
    np.testing.assert_allclose(found.probabilities(), sure.probabilities(), atol=0.01)


def test_an_interruption_while_workers_start_ends_them(graph, known, monkeypatch):
    """They would go on for the whole budget."""
    begun, ended = threading.Event(), []

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *given):
            super().submit(*given)
            begun.wait(60)
            raise KeyboardInterrupt

    def fit(job):
        begun.set()
        until = time.monotonic() + 10
        while not job.stopped() and time.monotonic() < until:
            time.sleep(0.01)
        ended.append(job.stopped())
        raise InterruptedError

    monkeypatch.setattr(contest, "ThreadPoolExecutor", Interrupted)
    monkeypatch.setattr(tournament, "candidates", lambda _: [Candidate("long", fit)])
    with pytest.raises(KeyboardInterrupt):
        run(graph, known)
    assert ended == [True]


def test_side_by_side_is_the_same(cheap, graph, known):
    """As many workers as you like: the same members, the same predictions."""
    said = [
        run(graph, known, workers=count).ensemble.probabilities() for count in (1, 3)
    ]
    np.testing.assert_array_equal(*said)


def test_a_candidate_that_fails_costs_nobody_else(cheap, graph, known, monkeypatch):
    def broken(job):
        raise RuntimeError("broken")

    def some(seed=0, first=1):
        return [*candidates(seed)[:first], Candidate("bad", broken)]

    monkeypatch.setattr(tournament, "candidates", some)
    found = run(graph, known)
    assert [entry.name for entry in found.entries] == ["linear"]
    assert found.failed == {"bad": "RuntimeError: broken"}
    monkeypatch.setattr(tournament, "candidates", lambda seed=0: some(seed, 0))
    with pytest.raises(RuntimeError, match="broken"):
        run(graph, known)


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_a_budget_that_is_spent_at_once_still_leaves_a_model(cheap, graph, known):
    found = run(graph, known, budget=1, workers=2)
    assert found.entries
    started = time.monotonic()
    late = contest.Contest(
        inputs=found.ensemble.reading,
        target=found.ensemble.target,
        folds=found.folds,
        metric="roc-auc",
        start=started,
        end=started - 1,
    )
    tournament.hold_tournament(late)
    assert [entry.name for entry in late.entries] == ["linear"]


def test_a_class_of_one_node(cheap, graph, known):
    y = np.zeros(graph.num_nodes, dtype=int)
    y[np.flatnonzero(known)[3]] = 1
    said = run(graph, known, y=y).ensemble.probabilities()
    assert np.isfinite(said).all()


def test_mean_absolute_errors_are_on_the_scale_of_the_labels(cheap, graph, known):
    values = 1000 * graph.x[:, 0].double().numpy() + 5
    found = run(graph, known, y=values, num_classes=0, metric="mae")
    score = SCORES["mae"]
    held_out, (low, high) = found.score()
    said = found.ensemble.probabilities()[~known]
    test = score.shown(score.function(values[~known], said))
    assert held_out == pytest.approx(test, rel=0.5)
    assert low < held_out < high
    rows = report(found, values, ~known)["leaderboard"]
    assert rows[0]["test"] == pytest.approx(rows[0]["validation"], rel=0.5)
    assert re.search(r"\(mean absolute error [+-]\d", verdict(found))


@pytest.mark.parametrize("memory", [10**12, 0])
def test_large_graphs_show_further_folds_to_the_best(
    cheap, graph, known, monkeypatch, memory
):
    """Together, so that a step is chosen for all; one by one where memory is short."""
    monkeypatch.setattr(tournament, "SMALL", 0)
    trained, fit = [], Candidate.train

    def recorded(candidate, job):
        trained.append((candidate.name, tuple(job.folds)))
        monkeypatch.setattr(tournament, "available_bytes", lambda _: memory)
        return fit(candidate, job)

    found = run(graph, known, train=recorded)
    every = fold_count(int(known.sum()))
    assert {len(entry.folds) for entry in found.entries} == {every}
    assert len(found.folds) == every
    folds = [numbers for name, numbers in trained if name == "MLP"]
    rest = tuple(range(1, every))
    assert folds == [(0,), rest] if memory else [(n,) for n in range(every)]


def test_cheap_candidates_that_a_slow_first_round_missed_are_tried(
    cheap, graph, known, monkeypatch
):
    monkeypatch.setattr(tournament, "SMALL", 0)
    monkeypatch.setattr(tournament, "_ROUND_1_SHARE", 1e-9)
    tried = {entry.name for entry in run(graph, known).entries}
    assert tried == {name for name in CHEAP if name != "MLP"}


def test_what_no_deadline_stops_is_not_begun_late(cheap, graph, known, monkeypatch):
    def long(seed=0):
        return [*candidates(seed)[:1], Candidate("long", pytest.fail, ahead=1e6)]

    monkeypatch.setattr(tournament, "candidates", long)
    assert [e.name for e in run(graph, known).entries] == ["linear"]


def test_the_leaderboard_and_the_verdict(cheap, graph, known):
    found = run(graph, known)
    rows = report(found, graph.y.numpy(), ~known)["leaderboard"]
    assert [set(row) for row in rows] == [
        {"name", "validation", "test", "seconds", "weight"}
    ] * len(rows)
    scores = [row["validation"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert sum(row["weight"] for row in rows) == pytest.approx(1, abs=1e-3)
    text = verdict(found)
    assert "the graph helped" in text
    assert "Not tried: an embedding as input and an evolved graph." in text


def test_the_test_score_is_that_of_the_ensemble(cheap, graph, known):
    found = run(graph, known)
    said = found.ensemble.probabilities()[~known]
    score = SCORES[found.metric].judge(graph.y.numpy()[~known], said)
    said = report(found, graph.y.numpy(), ~known)["test"]
    assert said == pytest.approx(score, rel=1e-6)


def test_scores_that_few_nodes_decide_are_said_to_be_so(cheap, graph, known):
    y, test = graph.y.numpy().copy(), np.zeros_like(known)
    y[np.flatnonzero(known & (y == 1))[5:]] = 0
    test[np.flatnonzero(~known & (y == 0))] = True
    found = run(graph, known, y=y)
    assert "Only 5 held-out nodes and 0 test nodes are of the rarer class" in (
        few_decide(found, y, test)
    )
    assert {row["test"] for row in report(found, y, test)["leaderboard"]} == {None}
    assert few_decide(run(graph, known), graph.y.numpy(), ~known) == ""


@pytest.mark.parametrize("metric", ["roc-auc", "average-precision"])
def test_draws_without_the_rarer_class_are_left_out(cheap, graph, known, metric):
    y = graph.y.numpy().copy()
    y[np.flatnonzero(known & (y == 1))[1:]] = 0
    found = run(graph, known, y=y, metric=metric)  # a warning would be an error
    assert "helped" not in verdict(found)  # one node is no proof
    score, said = SCORES[metric], np.tile([0.9, 0.1], (50, 1))
    said[0] = 0.1, 0.9
    assert interval(score, np.eye(50, dtype=int)[0], said) == (1, 1)


def test_what_the_clock_cut_short_is_no_argument(graph, known, monkeypatch):
    first, *_ = candidates(0)

    def late(job):
        while not job.out_of_time():
            time.sleep(0.01)
        member, out = first.fit(job)
        return member, 1 - out

    slow = Candidate("slow", late, reads=frozenset({"graph"}))
    monkeypatch.setattr(tournament, "candidates", lambda seed=0: [first, slow])
    found = run(graph, known, budget=5)
    cut = {entry.name: entry.cut_short for entry in found.entries}
    assert cut == {first.name: False, "slow": True}
    said = verdict(found)
    assert f"only {first.name} was tried" in said
    assert "Not tried to the end: the graph" in said


def test_the_best_is_an_argument_even_if_the_clock_cut_it_short(cheap, graph, known):
    found = run(graph, known)
    best, *others = found.entries
    assert "graph" in best.candidate.reads
    best.cut_short = True
    assert "the graph helped" in verdict(found)
    for one in others:
        one.cut_short = True
    assert "the graph helped" in verdict(found)


def test_weights_find_the_member_that_knows():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 3000)
    perfect = np.column_stack([1 - y, y]) * 0.8 + 0.1
    noise = [generator.dirichlet([1, 1], 3000) for _ in range(3)]
    scores, families = (SCORES["roc-auc"], SCORES["log-loss"]), ["a", "b", "c", "d"]
    weights = blend_weights(*scores, y, [*noise, perfect], families)
    assert weights.sum() == pytest.approx(1)
    assert weights[-1] > 0.8
    twice = blend_weights(*scores, y, [*noise, perfect, perfect], [*families, "d"])
    assert twice[-1] == pytest.approx(twice[-2])  # a family shares its weight
    assert twice[-2:].sum() == pytest.approx(weights[-1], abs=0.02)


@pytest.mark.parametrize("classes", [2, 4])
def test_scaling_calibrates(classes):
    generator = np.random.default_rng(0)
    logits = 2 * generator.normal(size=(4000, classes))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > generator.random((4000, 1))).argmax(axis=1)
    over = true**3 / (true**3).sum(axis=1, keepdims=True)
    scaling = fit_scaling(over, y)
    np.testing.assert_allclose(scaling.slope, 1 / 3, atol=0.03)
    np.testing.assert_allclose(scaling.probabilities(over), true, atol=0.05)
    np.testing.assert_allclose(fit_slope(over, y).slope, 1 / 3, atol=0.03)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_sets_and_intervals_cover_what_they_promise(coverage):
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.ones(5), 6000)
    y = (shares.cumsum(axis=1) > generator.random((6000, 1))).argmax(axis=1)
    errors = sorted_errors(shares[:3000], y[:3000], is_number=False)
    sets = class_sets(errors, shares[3000:], coverage)
    covered = sets[np.arange(3000), y[3000:]].mean()
    assert covered == pytest.approx(
        max(coverage, covered if covered > coverage else 0), abs=0.03
    )
    assert covered >= coverage - 0.03
    numbers, said = generator.normal(size=6000), np.zeros((6000, 1))
    errors = sorted_errors(said[:3000], numbers[:3000], is_number=True)
    half = usual_error(errors, coverage)
    assert (np.abs(numbers[3000:]) <= half).mean() == pytest.approx(coverage, abs=0.03)


def test_rounding_leaves_no_certain_class_out_of_its_set():
    errors = np.r_[np.zeros(95), np.full(5, 0.5)]
    certain = np.array([[1 - 4e-16, 4e-16]])
    assert class_sets(errors, certain, 0.9).tolist() == [[True, False]]


def test_too_few_errors_promise_everything():
    assert usual_error(np.array([0.1, 0.2]), 0.9) == np.inf


def test_no_loss_is_zero_and_not_minus_zero():
    assert str(SCORES["log-loss"].judge(np.array([0, 1]), np.eye(2))) == "0.0"


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_scikit_learn(name):
    from sklearn import metrics

    generator = np.random.default_rng(0)
    y, p = generator.integers(0, 3, 200), generator.dirichlet(np.ones(3), 200)
    numbers, said = generator.normal(size=200), generator.normal(size=(200, 1))
    best = p.argmax(axis=1)
    expected = {
        "roc-auc": lambda: metrics.roc_auc_score(y, p, multi_class="ovr"),
        "average-precision": lambda: metrics.average_precision_score(np.eye(3)[y], p),
        "accuracy": lambda: metrics.accuracy_score(y, best),
        "f1-macro": lambda: metrics.f1_score(y, best, average="macro"),
        "log-loss": lambda: metrics.log_loss(y, p),
        "r2": lambda: metrics.r2_score(numbers, said),
        "mae": lambda: metrics.mean_absolute_error(numbers, said),
        "rmse": lambda: metrics.mean_squared_error(numbers, said) ** 0.5,
    }[name]()
    score = SCORES[name]
    given = (numbers, said) if score.for_numbers else (y, p)
    value = score.shown(score.function(*given))
    assert value == pytest.approx(expected)
    low, high = interval(score, *given)
    assert low < value < high


@pytest.mark.parametrize("classes", [2, 3])
def test_rankings_with_ties_are_those_of_scikit_learn(classes):
    from sklearn import metrics

    generator = np.random.default_rng(0)
    y, p = (
        generator.integers(0, classes, 200),
        generator.random((200, classes)).round(1),
    )
    judged = [1] if classes == 2 else range(classes)
    each = [metrics.average_precision_score(y == c, p[:, c]) for c in judged]
    assert SCORES["average-precision"].function(y, p) == pytest.approx(np.mean(each))


def test_intervals_of_many_nodes_are_as_wide_as_by_drawing_them_all(monkeypatch):
    y = np.random.default_rng(0).integers(0, 2, 4000)
    p = np.clip(0.3 + 0.4 * y + np.random.default_rng(1).normal(0, 0.4, 4000), 0, 1)
    given = SCORES["accuracy"], y, np.column_stack([1 - p, p])
    low, high = interval(*given)
    monkeypatch.setattr(scoring, "_MOST_DRAWN", 500)
    near_low, near_high = interval(*given)
    assert near_low < SCORES["accuracy"].function(*given[1:]) < near_high
    assert near_high - near_low == pytest.approx(high - low, rel=0.2)


def test_metrics_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="'metric' must be one of"):
        choose_metric("r2", 2)
    assert choose_metric(None, 0) == "r2"
    assert choose_metric("roc_auc", 2) == "roc-auc"


def test_one_class_is_refused(graph, known):
    with pytest.raises(InputError, match="at least 2 classes"):
        run(graph, known, y=np.zeros(graph.num_nodes, dtype=int))
