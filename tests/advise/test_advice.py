"""Budgets are kept, interruptions give an answer, and scores add up to the metric."""

from dataclasses import replace

import numpy as np
import pytest

from advise.advised import Clock, advice_on, short, tiny_ring
from ecg_gnn.advise import Stopwatch, advise, make_question, verdict
from ecg_gnn.advise.advice import VARIANTS, node_scores
from ecg_gnn.advise.question import KnownNodes
from ecg_gnn.advise.report import cuts
from ecg_gnn.data import csbm
from ecg_gnn.ensemble.scoring import SCORES


@pytest.fixture(scope="module")
def graph():
    return csbm(nodes=120, homophily=0.3, features=4, num_splits=3)


@pytest.mark.parametrize(
    ("metric", "name"), [("roc_auc", "roc-auc"), ("accuracy",) * 2]
)
def test_the_mean_over_nodes_is_the_metric(metric, name):
    rng = np.random.default_rng(0)
    y, said = rng.integers(0, 2, 60), rng.random(60).round(1)  # with ties
    shares = np.column_stack([1 - said, said])
    scores = node_scores(metric, y, shares)
    assert scores.mean() == pytest.approx(SCORES[name].function(y, shares))


def test_everything_fits_without_a_limit(graph):
    said = []
    advice = advice_on(
        graph, splits=(0, 2), embeddings=("features", "mlp"), say=said.append, steps=4
    )
    assert (advice.stop, advice.splits, cuts(advice)) == (None, [0, 2], [])
    assert [gain.mean for gain in advice.gains] == sorted(
        (gain.mean for gain in advice.gains), reverse=True
    )
    assert said[-1] == "[2/2] split 2: 4 trainings"
    for part, mask in (
        ("held_out", graph.train_masks[2] | graph.val_masks[2]),
        ("test", graph.test_masks[2]),
    ):
        for variant in VARIANTS:
            rated = ~np.isnan(advice.scores[part][variant][1])
            assert np.array_equal(rated, mask.numpy())


class Slow:
    """A clock that moves when a network has been trained, or a time is asked for."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.trained, usual = 0.0, [], KnownNodes.train

        def train(nodes, variant, shape, candidate=None, progress=None):
            self.now += seconds * shape.steps
            self.trained.append((nodes.index, variant, shape.steps))
            progress(1, 1, 0.0)
            brief = replace(shape, steps=min(shape.steps, 4))
            return usual(nodes, variant, brief, candidate, progress)

        monkeypatch.setattr(KnownNodes, "train", train)

    def __call__(self):
        return self.now


def test_steps_are_cut_to_the_budget_and_it_is_kept(graph, monkeypatch):
    clock = Slow(monkeypatch, 1.0)
    advice = advice_on(
        graph,
        steps=300,
        splits=(0, 1),
        embeddings=("features",),
        watch=Stopwatch(600, clock),
    )
    assert 20 < advice.shape.steps < 60
    assert advice.stop is None
    assert clock.now < 600
    assert cuts(advice) == [f"{advice.shape.steps} training steps instead of 300"]


def test_splits_that_do_not_fit_are_left_out(graph, monkeypatch):
    clock = Slow(monkeypatch, 1.0)
    watch = Stopwatch(190, clock)
    advice = advice_on(graph, splits=(0, 1, 2), embeddings=("features",), watch=watch)
    assert advice.stop == "time"
    assert advice.splits == [0, 1]
    assert clock.now < 190
    assert "2 of 3 splits: time ran out" in cuts(advice)


def test_candidates_that_do_not_fit_are_left_out(graph, monkeypatch):
    clock = Slow(monkeypatch, 1.0)
    usual = KnownNodes.evolved

    def evolved(nodes, candidate):
        clock.now += 300
        return usual(nodes, candidate)

    monkeypatch.setattr(KnownNodes, "evolved", evolved)
    advice = advice_on(
        graph,
        steps=4,
        ks=(3, 4, 5),
        embeddings=("features",),
        watch=Stopwatch(1000, clock),
    )
    assert {gain.candidate.k for gain in advice.gains} == {3, 4}
    assert "not tried: features (k = 5)" in cuts(advice)
    assert advice.splits == [0]


def test_no_time_at_all(graph, monkeypatch):
    advice = advice_on(graph, watch=Stopwatch(3, Slow(monkeypatch, 10.0)))
    assert (advice.gains, advice.splits, advice.stop) == ([], [], "time")
    assert verdict(advice) == ("cannot_tell", "no evolved graph was measured")


@pytest.mark.parametrize(
    ("trainings", "measured", "splits"), [(1, 0, 0), (5, 1, 0), (7, 1, 1)]
)
def test_interrupted(graph, monkeypatch, trainings, measured, splits):
    clock, left = Slow(monkeypatch, 0.0), iter(range(trainings))
    usual = KnownNodes.train

    def train(*given, **named):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return usual(*given, **named)

    monkeypatch.setattr(KnownNodes, "train", train)
    advice = advice_on(
        graph,
        steps=4,
        splits=(0, 1),
        embeddings=("features",),
        watch=Stopwatch(1e6, clock),
    )
    assert advice.stop == "interrupted"
    assert (len(advice.gains), len(advice.splits)) == (measured, splits)
    assert f"{splits} of 2 splits: interrupted" in cuts(advice)


def test_a_ring_of_twelve_nodes():
    question = short(make_question(tiny_ring(), device="cpu"), 2)
    advice = advise(question, Stopwatch(1e6, Clock()))
    assert {gain.candidate.k for gain in advice.gains} == {1}
    assert advice.splits == [0]
