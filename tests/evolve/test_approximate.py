"""Approximate graphs: honest about their recall, and otherwise like exact ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.evolve import approximate, backends, knn_graph, knn_search
from ecg_gnn.evolve.approximate import (
    Index,
    IndexSearch,
    exact_kth,
    num_cells,
    search_index,
)
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.ties import Task
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed
from evolve.knn_cases import METRICS, clusters, embeddings, randn, tied_embeddings
from evolve.knn_reference import reference_graph

faiss = pytest.importorskip("faiss")
APPROXIMATE = ["ivf", "hnsw"]


def task_of(z, k=5, metric="cosine", seed=0):
    return Task(canonicalise(z, metric), k, derive_seed(seed, "knn-ties"))


def rows_of(graph, k):
    return graph.edge_index[0].view(-1, k)


@pytest.mark.parametrize("knn", APPROXIMATE)
@pytest.mark.parametrize("metric", METRICS)
def test_recall_is_reached_and_true(knn, metric):
    z = clusters(1500, 16, 0.3, count=30)
    graph = knn_search(z, 10, metric=metric, knn=knn, seed=1)
    want = rows_of(knn_search(z, 10, metric=metric, knn="exact", seed=1), 10)
    assert graph.method == knn
    found = rows_of(graph, 10)
    hits = [
        len(set(a) & set(b)) for a, b in zip(found.tolist(), want.tolist(), strict=True)
    ]
    # There are no ties: similar means equal. The sample is most of the rows.
    assert graph.recall == pytest.approx(sum(hits) / want.numel(), abs=0.01)
    assert graph.recall >= 0.95


@pytest.mark.parametrize("knn", APPROXIMATE)
@settings(max_examples=25, deadline=None)
@given(case=tied_embeddings(), metric=st.sampled_from(METRICS))
def test_few_rows_are_searched_exactly_or_as_well(knn, case, metric):
    z, k = case
    graph = knn_search(z, k, metric=metric, knn=knn, seed=2)
    edges = list(zip(*graph.edge_index.tolist(), strict=True))
    assert len(set(edges)) == len(edges) == k * len(z)
    assert all(source != target for source, target in edges)
    assert graph.recall == 1.0
    if knn == "ivf":  # which has no cells here
        canonical, nodes = canonicalise(z, metric), torch.arange(len(z))
        scores = canonical.pair_scores(nodes, rows_of(graph, k))
        assert torch.equal(scores.amin(1), exact_kth(canonical, nodes, k))


@pytest.mark.parametrize("knn", APPROXIMATE)
@pytest.mark.parametrize("kind", ["duplicates", "constant"])
def test_ties_among_equal_rows_are_drawn_by_the_rule(knn, kind):
    z = embeddings(kind, 300)
    graph = knn_search(z, 3, knn=knn, seed=5)
    assert torch.equal(graph.edge_index, knn_graph(z, 3, seed=5))
    some = list(zip(*graph.edge_index.tolist(), strict=True))
    assert some == reference_graph(z, 3, seed=5)
    # No hubs: everybody draws among equal rows for themselves.
    assert int(graph.edge_index[0].bincount().max()) < 20


@pytest.mark.parametrize("knn", APPROXIMATE)
@pytest.mark.parametrize("self_loops", ["exclude", "within_k", "add"])
def test_k_and_self_loops_are_honoured(knn, self_loops):
    z = embeddings("half-zero", 200)
    graph = knn_search(z, 6, knn=knn, self_loops=self_loops)
    per_node = 7 if self_loops == "add" else 6
    source, target = graph.edge_index
    assert target.bincount(minlength=200).tolist() == [per_node] * 200
    loops = 0 if self_loops == "exclude" else 200
    assert int((source == target).sum()) == loops
    both = knn_search(z, 6, knn=knn, self_loops=self_loops, symmetric=True)
    there = set(zip(*both.edge_index.tolist(), strict=True))
    assert there == there | {(u, v) for v, u in there}


@pytest.mark.parametrize("knn", APPROXIMATE)
def test_a_seed_determines_the_graph(knn, monkeypatch):
    monkeypatch.setattr(approximate, "RECALL", 0.5)  # leaves room for differences
    z = randn(800, 24)
    first, again, other = (knn_search(z, 5, knn=knn, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.edge_index, again.edge_index)
    assert first.recall == again.recall
    if knn == "ivf":
        assert not torch.equal(first.edge_index, other.edge_index)


def test_order_among_candidates_is_exact(monkeypatch):
    """The k most similar of whatever candidates an index gives."""
    task = task_of(randn(300, 4))
    search = IndexSearch(task, "ivf", 0)
    offered = torch.arange(0, 300, 23)  # places in the index

    def candidates(self, rows, count):
        return offered.expand(len(rows), -1)

    monkeypatch.setattr(Index, "search", candidates)
    with pytest.warns(UserWarning, match=r"finds .* less than 95%: --knn exact"):
        neighbours, _, recall = search_index(task, "ivf", 0)
    nodes, others = torch.arange(300), search.indexed[offered]
    scores = task.canonical.scores(nodes, others)
    scores[nodes.unsqueeze(1) == others] = -torch.inf
    assert torch.equal(neighbours, others[scores.topk(5).indices].sort(1).values)
    assert recall < 0.95


def test_too_few_candidates_are_made_up_for(monkeypatch):
    z = embeddings("ties", 200)

    def nothing(self, rows, count):
        return torch.full((len(rows), count), -1)

    monkeypatch.setattr(Index, "search", nothing)
    neighbours, _, recall = search_index(task_of(z), "hnsw", 0)
    assert recall == 1.0
    assert torch.equal(neighbours, knn_graph(z, 5)[0].view(-1, 5))


def test_an_index_holds_few_of_many_duplicates():
    z = torch.cat([randn(50, 4), torch.ones(900, 4), randn(50, 4, seed=1)])
    search = IndexSearch(task_of(z), "ivf", 0)
    assert search.indexed.numel() == 100 + 14  # k, eight more, and the node itself
    assert search.has_many_duplicates.nonzero().squeeze(1).tolist() == [*range(50, 950)]
    assert knn_search(z, 5, knn="ivf").recall >= 0.95


def test_small_pieces_change_nothing(monkeypatch):
    task = task_of(embeddings("half-zero", 500))
    want = search_index(task, "ivf", 0)
    monkeypatch.setattr(approximate, "_PAIRS_AT_A_TIME", 600)
    again = search_index(task, "ivf", 0)
    assert torch.equal(again.neighbours, want.neighbours)


def test_rows_on_a_gpu_are_searched_by_the_cpu(device):
    z = clusters(600, 16, 0.3, count=12)
    graph = knn_search(z.to(device), 5, knn="ivf")
    assert graph.edge_index.device.type == device.type
    want = knn_search(z, 5, knn="ivf").edge_index
    assert torch.equal(graph.edge_index.cpu(), want)


def test_effort_grows_until_enough_is_found():
    search = IndexSearch(task_of(randn(800, 32)), "ivf", 0)
    before = search.index.effort
    search.tune(torch.arange(0, 800, 10))
    assert before < search.index.effort <= search.index.max_effort


def test_progress_reaches_the_end():
    calls = []
    knn_search(randn(300, 4), 3, knn="ivf", progress=lambda *done: calls.append(done))
    assert calls == sorted(calls)
    assert calls[-1] == (300, 300)


def test_cells_grow_with_the_root_of_the_rows():
    assert [num_cells(n) for n in (10, 1000, 1_000_000)] == [1, 25, 4000]


@pytest.mark.parametrize("knn", APPROXIMATE)
def test_without_faiss(knn, monkeypatch):
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    message = rf"'knn' '{knn}' needs the package 'faiss': pip install 'ecg-gnn\[ann\]'"
    with pytest.raises(InputError, match=message):
        knn_graph(randn(20, 3), 2, knn=knn)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("std::bad_alloc"), ValueError("other")]
)
def test_an_index_that_does_not_fit_says_what_to_do(error, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(approximate, "search_index", fail)
    known = not isinstance(error, ValueError)
    message = r"\(ivf\) among 50 × 8 .* 'knn' exact .* width to 4 \(now 8\)$"
    with pytest.raises(
        MemoryError if known else ValueError, match=message if known else "^other$"
    ):
        knn_search(randn(50, 8), 3, knn="ivf")
