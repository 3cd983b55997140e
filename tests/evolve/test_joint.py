"""Who searches where several processes need one graph; real ones: ``test_sharded``."""

import pytest
import torch

from ecg_gnn.evolve import knn_search
from ecg_gnn.evolve.joint import JOINT_ROWS, knn_search_jointly, sharing_pays
from evolve.knn_cases import randn


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_sharing_pays_where_rows_do_not_fit(device):
    many = 2 * JOINT_ROWS
    assert sharing_pays(many, 64, device, 2, in_memory=False)
    assert not sharing_pays(JOINT_ROWS, 64, device, 2, in_memory=False)
    # Blocks are several times slower: two processes do not make up for that.
    assert not sharing_pays(many, 64, device, 2, in_memory=True)
    assert sharing_pays(many, 64, device, 64, in_memory=True)


def test_one_process_searches_as_ever():
    z = randn(30, 4)
    got = knn_search_jointly(z, 3, seed=1, metric="dot", symmetric=True)
    want = knn_search(z, 3, seed=1, metric="dot", symmetric=True)
    assert torch.equal(got.edge_index, want.edge_index)
    assert got[1:] == want[1:]
