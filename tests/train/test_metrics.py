"""Scores against scikit-learn, losses against torch."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from ecg_gnn.system.checks import METRIC_NAMES, default_metric, metric_label
from ecg_gnn.train import METRICS, score_probabilities
from ecg_gnn.train.training_task import accuracy, roc_auc, supervised_loss
from toy_graphs import random


@st.composite
def scored_labels(draw, num_values):
    """Scores from ``num_values`` distinct ones, and labels of both classes."""
    size = draw(st.integers(2, 60))
    labels = draw(st.lists(st.integers(0, 1), min_size=size - 2, max_size=size - 2))
    steps = st.integers(0, num_values - 1)
    scores = draw(st.lists(steps, min_size=size, max_size=size))
    scaled = torch.tensor(scores, dtype=torch.float32)[:, None] / 8 - 1
    return scaled, torch.tensor([0, 1, *labels])


@pytest.mark.parametrize("num_values", [1, 3, 1000])
def test_roc_auc_matches_scikit_learn(num_values):
    @settings(max_examples=100, deadline=None)
    @given(case=scored_labels(num_values))
    def check(case):
        logits, y = case
        expected = roc_auc_score(y.numpy(), logits[:, 0].numpy())
        assert roc_auc(logits, y).item() == pytest.approx(expected, abs=1e-12)

    check()


def test_roc_auc_of_many_nodes(device):
    logits = random(20_000, 1, dtype=torch.float32).round(decimals=1)
    y = (random(20_000, seed=2) > 1).long()
    expected = roc_auc_score(y.numpy(), logits[:, 0].numpy())
    got = roc_auc(logits.to(device), y.to(device))
    assert got.device.type == device.type
    assert got.item() == pytest.approx(expected, abs=1e-12)


def test_roc_auc_by_hand():
    logits, y = torch.tensor([[1.0], [2.0], [2.0], [3.0]]), torch.tensor([0, 0, 1, 1])
    assert roc_auc(logits, y).item() == (1 + 1 + 0.5 + 1) / 4
    assert roc_auc(-logits, y).item() == 0.5 / 4
    assert roc_auc(torch.zeros(4, 1), y).item() == 0.5


def test_roc_auc_of_two_logits_is_that_of_their_difference():
    logits, y = random(50, 2), torch.arange(50) % 2
    difference = (logits[:, 1] - logits[:, 0])[:, None]
    assert torch.equal(roc_auc(logits, y), roc_auc(difference, y))
    shifted = logits + random(50, 1, seed=3)  # softmax does not feel this
    assert roc_auc(shifted, y).item() == pytest.approx(roc_auc(logits, y).item())


@pytest.mark.parametrize("label", [0, 1])
def test_roc_auc_of_one_class_is_nan(label):
    assert roc_auc(random(5, 1), torch.full((5,), label)).isnan()


def test_roc_auc_of_infinite_scores_orders_them():
    logits = torch.tensor([[-math.inf], [0.0], [math.inf], [math.inf]])
    assert roc_auc(logits, torch.tensor([0, 0, 1, 1])).item() == 1


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.integers(-3, 3)] * 4, st.integers(0, 3)), min_size=1, max_size=40
    )
)
def test_accuracy_matches_scikit_learn(rows):
    table = torch.tensor(rows, dtype=torch.float32)
    logits, y = table[:, :4], table[:, 4].long()
    expected = accuracy_score(y.numpy(), logits.numpy().argmax(1))
    assert accuracy(logits, y).item() == pytest.approx(expected, abs=1e-12)


def test_accuracy_of_one_logit_cuts_at_zero():
    logits = torch.tensor([[-1.0], [0.0], [0.5], [2.0]])
    assert accuracy(logits, torch.tensor([0, 0, 1, 0])).item() == 0.75


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("rows", [slice(None), slice(0, 1)])
def test_nan_among_the_logits_is_no_score(metric, columns, rows):
    logits = random(6, columns)
    logits[rows] = math.nan
    assert METRICS[metric](logits, torch.arange(6) % 2).isnan()


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_double_scalars(metric, device):
    logits, y = random(6, 1, dtype=torch.float32), torch.arange(6) % 2
    score = METRICS[metric](logits.to(device), y.to(device))
    assert score.dtype == torch.float64
    assert score.shape == ()
    assert score.device.type == device.type


def test_loss_of_many_classes():
    logits, y = random(30, 4), torch.arange(30) % 4
    expected = -logits.log_softmax(1)[torch.arange(30), y].mean()
    torch.testing.assert_close(supervised_loss(logits, y), expected)
    assert torch.equal(supervised_loss(logits, y), F.cross_entropy(logits, y))


def test_loss_of_one_logit():
    logits, y = random(30, 1), torch.arange(30) % 2
    chance = logits[:, 0].sigmoid()
    expected = -torch.where(y == 1, chance, 1 - chance).log().mean()
    torch.testing.assert_close(supervised_loss(logits, y), expected)


def test_one_logit_is_two_with_the_first_at_zero():
    logit, y = random(30, 1), torch.arange(30) % 2
    pair = torch.cat([torch.zeros_like(logit), logit], dim=1)
    torch.testing.assert_close(supervised_loss(logit, y), supervised_loss(pair, y))


def test_every_metric_has_a_name_and_a_function():
    assert list(METRICS) == list(METRIC_NAMES)
    assert [metric_label(metric) for metric in METRICS] == ["accuracy", "ROC AUC"]
    assert [default_metric(classes) for classes in (2, 3)] == ["roc_auc", "accuracy"]


def test_scores_of_probabilities_match_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    positive = torch.rand(500, generator=generator)
    positive[:100] = positive[:100].round(decimals=1)  # ties, 0, 1 and one half
    y = (torch.rand(500, generator=generator) < positive).long()
    rows = torch.stack([1 - positive, positive], dim=1)
    expected = roc_auc_score(y.numpy(), positive.numpy())
    assert score_probabilities("roc_auc", rows, y) == pytest.approx(expected, abs=1e-12)
    expected = accuracy_score(y.numpy(), rows.argmax(1).numpy())
    assert score_probabilities("accuracy", rows, y) == pytest.approx(expected)
    three = torch.softmax(torch.randn(500, 3, generator=generator), dim=1)
    expected = accuracy_score(y.numpy(), three.argmax(1).numpy())
    assert score_probabilities("accuracy", three, y) == pytest.approx(expected)
