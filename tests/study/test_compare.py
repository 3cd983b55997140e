"""Means, deviations and paired intervals against statistics done by others."""

import numpy as np
import pytest
import torch
from scipy import stats

from ecg_gnn.evolve import defined_statistics
from ecg_gnn.study import Record, compare, summarize
from ecg_gnn.study.comparison import paired_interval
from ecg_gnn.study.records import mean


def record(test, split, variant="baseline", val=0.5):
    return Record(
        id="x",
        variant=variant,
        embedding=None if variant == "baseline" else "mlp",
        model="gcn",
        split=split,
        seed=0,
        best_step=1,
        val=val,
        test=test,
        seconds=0.0,
        peak_memory_mb=None,
        evolved_statistics=[],
        losses=[],
        val_scores=[],
        test_scores=[],
    )


def scores(seed, count=10):
    return np.random.default_rng(seed).random(count).tolist()


def summary(values, variant="baseline", splits=None):
    splits = splits or range(len(values))
    pairs = zip(values, splits, strict=True)
    return summarize([record(value, split, variant) for value, split in pairs])


def test_mean_and_sample_deviation():
    values = scores(0)
    found = summary(values)
    assert found.test_mean == pytest.approx(np.mean(values))
    assert found.test_std == pytest.approx(np.std(values, ddof=1))
    assert found.per_split == values


def test_records_are_put_in_the_order_of_their_splits():
    found = summary([0.3, 0.1, 0.2], splits=[7, 0, 3])
    assert found.splits == [0, 3, 7]
    assert found.per_split == [0.1, 0.2, 0.3]


def test_validation_mean():
    found = summarize([record(0.1, 0, val=0.2), record(0.1, 1, val=0.4)])
    assert found.val_mean == pytest.approx(0.3)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_interval_is_the_paired_t_tests(count):
    ours, other = scores(1, count), scores(2, count)
    found = compare(summary(ours, "ecg"), summary(other))
    expected = stats.ttest_rel(ours, other).confidence_interval(0.95)
    assert found.mean_difference == pytest.approx(np.mean(ours) - np.mean(other))
    assert found.ci_low == pytest.approx(expected.low)
    assert found.ci_high == pytest.approx(expected.high)
    assert (found.variant, found.embedding, found.against) == ("ecg", "mlp", "baseline")


def test_the_interval_is_students():
    differences = scores(3)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert paired_interval(differences) == pytest.approx(tuple(expected))


def test_one_split_has_no_deviation_and_no_interval():
    found = summary([0.5])
    assert found.test_std is None
    compared = compare(summary([0.75], "ecg"), found)
    assert compared.mean_difference == 0.25
    assert compared.ci_low is compared.ci_high is None


def test_equal_differences_have_an_interval_of_a_point():
    compared = compare(summary([0.5, 0.75], "ecg"), summary([0.25, 0.5]))
    assert compared.ci_low == compared.mean_difference == compared.ci_high == 0.25


def test_pairs_need_the_same_splits():
    with pytest.raises(AssertionError, match="same splits"):
        compare(summary([0.5], splits=[0]), summary([0.5], splits=[1]))


def test_undefined_statistics_are_null():
    none = torch.empty(2, 0, dtype=torch.long)
    measured = defined_statistics(none, torch.tensor([0, 1]), directed=True)
    assert measured["num_edges"] == 0
    assert measured["edge_homophily"] is None
    rows = [{"a": 1, "b": None}, {"a": 2, "b": 3}]
    assert mean(rows) == {"a": 1.5, "b": None}
