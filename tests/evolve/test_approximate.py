"""Approximate graphs: honest about their recall, and otherwise like exact ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.evolve import approximate, backends, knn_graph, knn_search
from ecg_gnn.evolve.approximate import (
    Index,
    exact_kth,
    num_cells,
    search_approximately,
)
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.nearest import Search
from ecg_gnn.system.checks import InputError
from evolve.knn_cases import METRICS, clusters, embeddings, randn, tied_embeddings
from evolve.knn_reference import reference_graph

faiss = pytest.importorskip("faiss")
APPROXIMATE = ["ivf", "hnsw"]


def search_for(z, k=5, metric="cosine", seed=0):
    return Search(canonicalise(z, metric), k, seed)


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
        scores = canonical.candidate_scores(nodes, rows_of(graph, k))
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
    search = search_for(randn(300, 4))
    offered, indexes = torch.arange(0, 300, 23), []

    def places(self, rows):
        indexes.append(self.nodes)
        return offered.expand(len(rows), -1)

    monkeypatch.setattr(Index, "places", places)
    with pytest.warns(UserWarning, match=r"finds .* less than 95%: --knn exact"):
        neighbours, recall = search_approximately("ivf", search)
    nodes, others = torch.arange(300), indexes[0][offered]
    scores = search.canonical.scores(nodes, others)
    scores[nodes.unsqueeze(1) == others] = -torch.inf
    assert torch.equal(neighbours, others[scores.topk(5).indices].sort(1).values)
    assert recall < 0.95


def test_too_few_candidates_are_made_up_for(monkeypatch):
    z = embeddings("ties", 200)

    def nothing(self, rows):
        return torch.full((len(rows), self.width), -1)

    monkeypatch.setattr(Index, "places", nothing)
    neighbours, recall = search_approximately("hnsw", search_for(z))
    assert recall == 1.0
    assert torch.equal(neighbours, knn_graph(z, 5)[0].view(-1, 5))


def test_an_index_holds_few_of_many_duplicates(monkeypatch):
    z = torch.cat([randn(50, 4), torch.ones(900, 4), randn(50, 4, seed=1)])
    sizes, exactly = [], []
    inner, real = Index.tune, approximate.search_exactly

    def tune(self, nodes, k):
        sizes.append(self.nodes.numel())
        inner(self, nodes, k)

    def search_exactly(search, groups, nodes):
        exactly.extend(nodes.tolist())
        return real(search, groups, nodes)

    monkeypatch.setattr(Index, "tune", tune)
    monkeypatch.setattr(approximate, "search_exactly", search_exactly)
    assert knn_search(z, 5, knn="ivf").recall >= 0.95
    assert sizes == [100 + 14]  # k, eight more, and the node itself
    assert exactly == [*range(50, 950)]


def test_small_pieces_change_nothing(monkeypatch):
    search = search_for(embeddings("half-zero", 500))
    want = search_approximately("ivf", search)
    monkeypatch.setattr(approximate, "_PAIRS_AT_A_TIME", 600)
    monkeypatch.setattr(approximate, "_SCORES_AT_A_TIME", 600)
    again = search_approximately("ivf", search)
    assert torch.equal(again[0], want[0])
    assert again[1] == want[1]


def test_rows_on_a_gpu_are_searched_by_the_cpu(device):
    z = clusters(600, 16, 0.3, count=12)
    graph = knn_search(z.to(device), 5, knn="ivf")
    assert graph.edge_index.device.type == device.type
    want = knn_search(z, 5, knn="ivf").edge_index
    assert torch.equal(graph.edge_index.cpu(), want)


def test_effort_grows_until_enough_is_found():
    canonical = canonicalise(randn(800, 32), "cosine")
    index = Index(canonical, torch.arange(800), 14, "ivf", 0)
    before = index.effort
    index.tune(torch.arange(0, 800, 10), 5)
    assert before < index.effort <= index.max_effort


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
