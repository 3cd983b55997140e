"""Counting sorts are stable sorts."""

import pytest
import torch

from ecg_gnn.kernels import Adjacency
from ecg_gnn.kernels.edge_order import lexicographic_order, stable_argsort
from ecg_gnn.kernels.hashing import _whole, distinct_rows, mix


def random_edges(num_nodes, num_edges, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(num_nodes, (2, num_edges), generator=generator)


@pytest.mark.parametrize(("num_nodes", "num_edges"), [(7, 0), (1, 5), (50, 3000)])
def test_stable_argsort_is_torchs(num_nodes, num_edges):
    ids = random_edges(num_nodes, num_edges)[0]
    assert torch.equal(stable_argsort(ids, num_nodes), ids.argsort(stable=True))


@pytest.mark.parametrize("before", ["unsorted", "by source", "by target"])
def test_lexicographic_order_is_that_of_joint_keys(before):
    source, target = random_edges(40, 2000)
    if before != "unsorted":
        major, minor = (source, target) if before == "by source" else (target, source)
        order = (major * 40 + minor).argsort(stable=True)
        source, target = source[order], target[order]
    expected = (target * 40 + source).argsort(stable=True)
    order = lexicographic_order(source, target, 40)
    if before == "by target":
        assert order is None
    else:
        assert torch.equal(order, expected)


def test_an_adjacency_knows_its_sources_without_sorting_them():
    edges = random_edges(30, 500)
    adjacency = Adjacency.from_edge_index(edges, 30)
    degree = torch.bincount(edges[0], minlength=30)
    assert torch.equal(adjacency.out_degree, degree)
    assert "turning" not in vars(adjacency.by_target)
    assert torch.equal(adjacency.by_source.offsets.diff(), degree)
    dropped = adjacency.drop_edges(0.5)
    assert dropped.by_source is adjacency.by_source


def test_distinct_rows_of_floats():
    rows = torch.tensor([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0], [1.0, 0.0]])
    groups = distinct_rows(rows)
    assert groups[0] == groups[1] == groups[3] != groups[2]
    assert groups.max() == 1


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 2.0), (0.0, 1.0, 2.0)])
def test_round_numbers_hash_as_well_as_others(values):
    """Most bits of such floats are zero: hashes must not be."""
    weights = mix(torch.arange(12))
    rows = torch.cartesian_prod(*[torch.tensor(values)] * 12)[:100_000]
    hashes = (_whole(rows) * weights).sum(1)
    assert hashes.unique().numel() == rows.size(0)
    assert (hashes % 256).unique().numel() > 1


def test_rows_without_columns_are_all_equal():
    assert distinct_rows(torch.empty(3, 0)).tolist() == [0, 0, 0]
