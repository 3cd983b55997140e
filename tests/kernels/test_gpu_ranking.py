"""Triton's ROC AUC against scikit-learn's and the sorting one's, to the bit."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from ecg_gnn.kernels import engine, using_engine
from ecg_gnn.train.training_task import roc_auc
from toy_graphs import random


def by_sorting(score, y):
    with using_engine("reference"):
        return roc_auc(score[:, None], y)


@pytest.mark.parametrize("size", [2, 31, 32, 33, 127, 129, 300])
@pytest.mark.parametrize("decimals", [0, 6])
def test_equals_sorting_and_scikit_learn(size, decimals, place):
    score = random(size, dtype=torch.float32).round(decimals=decimals)
    y = (random(size, seed=2) > 0.5).long()
    y[:2] = torch.tensor([0, 1])
    got = engine.gpu_kernels().roc_auc(score.to(place), y.to(place)).cpu()
    assert torch.equal(got, by_sorting(score, y))
    assert got.item() == pytest.approx(roc_auc_score(y, score), abs=1e-12)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=50),
)
def test_few_values_many_ties(rows, place):
    rows = [(0, 0), (1, 1), *rows]
    score = torch.tensor([float(value) for value, _ in rows])
    y = torch.tensor([label for _, label in rows])
    got = engine.gpu_kernels().roc_auc(score.to(place), y.to(place)).cpu()
    assert torch.equal(got, by_sorting(score, y))


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_no_area(label, place):
    y = torch.full((5,), label, device=place)
    assert engine.gpu_kernels().roc_auc(random(5).to(place), y).isnan()


def test_nan_has_no_area_and_infinity_has(place):
    y = torch.tensor([0, 0, 1, 1], device=place)
    score = torch.tensor([-torch.inf, 0.0, torch.inf, torch.inf], device=place)
    assert engine.gpu_kernels().roc_auc(score, y).item() == 1
    score[0] = torch.nan
    assert engine.gpu_kernels().roc_auc(score, y).isnan()


def test_the_metric_uses_it_up_to_its_limit(place, monkeypatch):
    score, y = random(60, 1, dtype=torch.float32).to(place), torch.arange(60) % 2
    y, functions = y.to(place), engine.gpu_kernels()
    calls = []
    known = functions.roc_auc
    monkeypatch.setattr(
        functions, "roc_auc", lambda *given: calls.append(1) or known(*given)
    )
    few = roc_auc(score, y)
    assert calls == [1]
    monkeypatch.setattr(functions, "MOST_SCORES", 59)
    assert torch.equal(few, roc_auc(score, y))
    assert calls == [1]
