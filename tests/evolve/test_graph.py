"""Weights by similarity, and rows of several graphs joined into one."""

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.evolve import EvolvedGraph, graph, join_rows, knn_graph, similarity_weights
from toy_graphs import random


def knn(seed, k=4):
    return knn_graph(random(30, 6, seed=seed), k)


@pytest.mark.parametrize("chunk", [1, 50, 1 << 24])
def test_weights_are_cosines(chunk, monkeypatch):
    monkeypatch.setattr(graph, "_CHUNK_ELEMENTS", chunk)
    z, edges = random(30, 6), knn(2, k=9)
    cosine = F.cosine_similarity(z[edges[0]], z[edges[1]])
    assert (cosine < 0.01).any()
    expected = cosine.clamp(0.01, 1).float()
    torch.testing.assert_close(similarity_weights(z, edges), expected)


def test_self_loops_weigh_one_and_nobody_more():
    z = torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    edges = torch.tensor([[0, 1, 2, 1], [0, 1, 0, 2]])
    torch.testing.assert_close(
        similarity_weights(z, edges), torch.tensor([1, 1, 1, 0.01])
    )


def test_weights_follow_the_nodes_when_these_are_renumbered():
    z, edges = random(30, 6), knn(3)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    place = order.argsort()
    renumbered = similarity_weights(z[order], place[edges])
    torch.testing.assert_close(renumbered, similarity_weights(z, edges))


def test_every_row_comes_from_its_home():
    graphs = [
        EvolvedGraph(edges, torch.full((edges.size(1),), place + 1.0))
        for place, edges in enumerate(map(knn, (4, 5, 6)))
    ]
    home = torch.arange(30) % 3
    joined = join_rows(graphs, home)
    assert torch.equal(joined.edge_index[1], torch.arange(30).repeat_interleave(4))
    assert torch.equal(joined.edge_weight, home[joined.edge_index[1]] + 1.0)
    for node in range(30):
        rows = [g.edge_index[0, g.edge_index[1] == node] for g in (graphs[home[node]],)]
        assert torch.equal(joined.edge_index[0, joined.edge_index[1] == node], rows[0])


def test_plain_graphs_join_to_a_plain_one():
    graphs = [EvolvedGraph(knn(seed)) for seed in (4, 5)]
    home = torch.arange(30) % 2
    joined = join_rows(graphs, home)
    assert joined.edge_weight is None
    same = join_rows(graphs[:1] * 2, home)
    assert torch.equal(same.edge_index, graphs[0].edge_index)


def test_edges_alone_are_a_graph_too():
    edges = knn(1)
    assert EvolvedGraph.of(edges) == EvolvedGraph(edges, None)
    whole = EvolvedGraph(edges, torch.ones(edges.size(1)))
    assert EvolvedGraph.of(whole) is whole
