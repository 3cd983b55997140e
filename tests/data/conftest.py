"""A small valid graph as a dict of arrays, and the file it makes."""

import numpy as np
import pytest


def toy_arrays(num_nodes=24, num_splits=2, num_classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(num_nodes) % num_classes
    parts = np.stack([np.roll(np.arange(num_nodes) // 2 % 4, s * 2) for s in range(2)])
    parts = np.resize(parts, (num_splits, num_nodes))
    return {
        "node_features": rng.standard_normal((num_nodes, 3)).astype(np.float32),
        "node_labels": y,
        "edges": rng.integers(num_nodes, size=(40, 2)),
        "train_masks": parts < 2,
        "val_masks": parts == 2,
        "test_masks": parts == 3,
    }


@pytest.fixture
def arrays():
    return toy_arrays()


@pytest.fixture
def arrays_of():
    return toy_arrays


@pytest.fixture
def save(tmp_path):
    def _save(arrays, name="toy.npz"):
        path = tmp_path / name
        np.savez_compressed(path, **arrays)
        return path

    return _save
