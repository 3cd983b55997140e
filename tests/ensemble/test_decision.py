"""Which class is said: rare ones too where that scores higher, and nothing is lost."""

import numpy as np
import pytest

from ecg_gnn.ensemble.certainty import choose_multipliers
from ecg_gnn.ensemble.scoring import SCORES


def world(count, ratio, distance, seed=0):
    """Classes and their true probabilities; of so many nodes one is of the second."""
    generator = np.random.default_rng(seed)
    y = (generator.random(count) < 1 / ratio).astype(int)
    place = generator.normal(size=count) + distance * y
    odds = np.exp(distance * place - distance**2 / 2) / (ratio - 1)
    return y, np.column_stack([1 / (1 + odds), odds / (1 + odds)])


def test_a_rare_class_is_said():
    score = SCORES["f1-macro"]
    y, shares = world(4000, 50, 2)
    multipliers, judged = choose_multipliers(score, y, shares)
    truth, told = world(20_000, 50, 2, seed=1)
    plain = score.function(truth, told)
    better = score.function(truth, told * multipliers)
    assert better > plain + 0.05
    # Rows are judged by what other rows chose, so that nothing is flattered.
    assert score.function(y, judged) == pytest.approx(better, abs=0.03)


@pytest.mark.parametrize("metric", ["accuracy", "f1-macro", "roc-auc", "log-loss"])
def test_nothing_is_changed_where_nothing_is_gained(metric):
    y, shares = world(600, 2, 1)
    multipliers, judged = choose_multipliers(SCORES[metric], y, shares)
    np.testing.assert_array_equal(multipliers, 1)
    assert judged is shares


def test_of_many_classes_the_rare_ones_are_said_too():
    generator = np.random.default_rng(0)
    counts = np.array([1500, 400, 60])
    y = np.repeat(np.arange(3), counts)
    density = np.exp(1.5 * (generator.normal(size=(y.size, 3)) + 1.5 * np.eye(3)[y]))
    shares = density * counts
    shares /= shares.sum(axis=1, keepdims=True)
    score = SCORES["f1-macro"]
    multipliers, judged = choose_multipliers(score, y, shares)
    assert multipliers[2] > multipliers[0]
    assert score.function(y, judged) > score.function(y, shares) + 0.01
