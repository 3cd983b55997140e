"""On real graphs, batches and full batches come to the same."""

import pytest

from ecg_gnn.config import ModelConfig, RunConfig, TrainConfig
from ecg_gnn.data import load_dataset
from ecg_gnn.pipeline.resolve import resolve
from small_runs import train_one

pytestmark = pytest.mark.dataset


def score(dataset, **batches):
    config = RunConfig(
        dataset="tolokers",
        model=ModelConfig(name="gcn", layers=2, hidden=16, dropout=0.0),
        train=TrainConfig(steps=80, lr=1e-2, **batches),
    )
    _, result = train_one(dataset, dataset.split(0), [], resolve(config, dataset))
    return result.test


def test_batches_agree_with_full_batches(data_root):
    """Gates are wide: eighty steps at width 16 leave a point of noise or so."""
    dataset = load_dataset("tolokers", data_root=data_root, download=False)
    full = score(dataset)
    assert full > 0.7
    assert score(dataset, batch_size=2048, fanout=(10,)) == pytest.approx(
        full, abs=0.02
    )
