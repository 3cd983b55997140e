"""Cells, which find neighbours on a GPU; here on whatever there is."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.evolve import backends, knn_graph, knn_search
from ecg_gnn.evolve.backends import BACKENDS, approximate, indexes
from ecg_gnn.evolve.backends.approximate import Truth, search_approximately
from ecg_gnn.evolve.backends.indexes import Cells
from ecg_gnn.evolve.exact.canonical import canonicalise
from evolve.knn_cases import METRICS, clusters, embeddings, randn, tied_embeddings

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True, scope="module")
def _everywhere():
    search = partial(search_approximately, "ivf", Cells, Cells)
    here = replace(BACKENDS["ivf"], search=search, package=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKENDS, "ivf", here)
        yield


def rows_of(graph, k):
    return graph.edge_index[0].view(-1, k).cpu()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", [0, 1])
def test_recall_is_reached_and_true(metric, seed):
    z = clusters(3000, 16, 0.3, count=30).to(DEVICE)
    graph = knn_search(z, 10, metric=metric, knn="ivf", seed=seed)
    want = rows_of(knn_search(z, 10, metric=metric, knn="exact", seed=seed), 10)
    assert graph.method == "ivf"
    pairs = zip(rows_of(graph, 10).tolist(), want.tolist(), strict=True)
    share = sum(len({*found} & {*true}) for found, true in pairs) / want.numel()
    assert graph.recall == pytest.approx(share, abs=0.02)
    assert graph.recall >= 0.95


@settings(max_examples=40, deadline=None)
@given(case=tied_embeddings(), metric=st.sampled_from(METRICS))
def test_few_rows_are_searched_exactly(case, metric):
    z, k = case
    graph = knn_search(z.to(DEVICE), k, metric=metric, knn="ivf", seed=2)
    edges = list(zip(*graph.edge_index.tolist(), strict=True))
    assert len(set(edges)) == len(edges) == k * len(z)
    assert all(source != target for source, target in edges)
    truth = Truth(canonicalise(z, metric), torch.arange(len(z)), k)
    assert graph.recall == truth.recall(rows_of(graph, k)) == 1.0


@pytest.mark.parametrize("kind", ["duplicates", "constant"])
def test_ties_among_equal_rows_are_drawn_by_the_rule(kind):
    z = embeddings(kind, 300).to(DEVICE)
    graph = knn_search(z, 3, knn="ivf", seed=5)
    assert torch.equal(graph.edge_index, knn_graph(z, 3, seed=5))


def test_a_seed_determines_the_graph(monkeypatch):
    monkeypatch.setattr(approximate, "RECALL", 0.5)  # leaves room for differences
    z = randn(2000, 24).to(DEVICE)
    first, again, other = (knn_search(z, 5, knn="ivf", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.edge_index, other.edge_index)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [4, 700])
def test_all_cells_hold_all_neighbours(metric, count):
    """Every row once, and -1 where there are no more."""
    rows = canonicalise((randn(600, 8) * (1 + randn(600, 1).abs())).to(DEVICE), metric)
    cells = Cells(rows, 0)
    cells.effort = cells.max_effort
    some = torch.tensor([3, 599, 3, 0], device=DEVICE)
    found = cells.search(some, count)
    assert found.shape == (4, count)
    if count == 700:
        assert [sorted(row) for row in found.tolist()] == 4 * [
            [-1] * 100 + [*range(600)]
        ]
    else:
        want = rows.scores(some, torch.arange(600, device=DEVICE)).topk(4).indices
        assert torch.equal(found.sort(1).values, want.sort(1).values)


def test_more_effort_finds_no_less():
    rows = canonicalise(randn(4000, 8).to(DEVICE), "cosine")
    truth = Truth(rows, torch.arange(0, 4000, 40, device=DEVICE), 5)
    cells, shares = Cells(rows, 0), []
    for effort in (1, 4, 16, cells.max_effort):
        cells.effort = effort
        found = cells.search(truth.nodes, 6)
        found = found.where(found != truth.nodes.unsqueeze(1), -1).sort(1).values[:, 1:]
        near = rows.pair_scores(truth.nodes, found.clamp(min=0))
        shares.append(float((near >= truth.kth.unsqueeze(1)).double().mean()))
    assert shares == sorted(shares)
    assert shares[0] < 0.7 < shares[2]
    assert shares[-1] > 0.99


def test_every_row_is_in_the_cell_of_its_nearest_centre():
    rows = canonicalise(randn(3000, 6).to(DEVICE), "euclidean")
    cells = Cells(rows, 0)
    assert cells.max_effort == 76
    assert torch.equal(cells.order.sort().values, torch.arange(3000, device=DEVICE))
    points = rows.rows(torch.arange(3000, device=DEVICE))
    distance = torch.cdist(points, cells._centres.double())
    own = distance.gather(1, cells._cell_of.unsqueeze(1)).squeeze(1)
    assert torch.allclose(own, distance.amin(1), atol=1e-6)


def test_small_pieces_change_nothing(monkeypatch):
    z = clusters(1000, 8, 0.5).to(DEVICE)
    want = knn_search(z, 5, knn="ivf").edge_index
    monkeypatch.setattr(indexes, "_SCORES_AT_A_TIME", 3000)
    monkeypatch.setattr(approximate, "_PAIRS_AT_A_TIME", 1000)
    monkeypatch.setattr(approximate, "_CUDA_PAIRS_AT_A_TIME", 1000)
    assert torch.equal(knn_search(z, 5, knn="ivf").edge_index, want)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("noise", [1e-4, 1e-6])
def test_very_near_rows_are_told_apart(metric, noise):
    """Seen from their cell's centre: float32 cannot do it from afar."""
    z = clusters(2000, 8, noise, count=4).to(DEVICE)
    assert knn_search(z, 5, metric=metric, knn="ivf").recall >= 0.95


def test_a_few_cells_are_enough_where_a_row_is_much_longer():
    z = randn(4000, 4)
    z[17] *= 1e4
    cells = Cells(canonicalise(z.to(DEVICE), "dot"), 0)
    largest = int(cells._cell_of.bincount().max())
    assert largest < 400


def test_a_few_cells_are_enough_far_from_the_origin():
    rows = canonicalise((randn(4000, 4).double() + 3000).to(DEVICE), "cosine")
    assert int(Cells(rows, 0)._cell_of.bincount().max()) < 400


def test_nothing_else_is_needed(monkeypatch):
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    assert knn_search(randn(100, 4).to(DEVICE), 3, knn="ivf").method == "ivf"
