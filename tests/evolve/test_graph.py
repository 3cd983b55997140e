"""Evolved graphs: weights, joined rows, and the transform that adds one to data."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import Compose

from ecg_gnn.evolve import (
    EvolvedGraph,
    EvolveGraph,
    graph,
    join_rows,
    knn_graph,
    similarity_weights,
)
from ecg_gnn.system.checks import InputError
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


# --- The transform -------------------------------------------------------------------


@pytest.fixture
def data():
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=torch.tensor([[0, 1], [1, 2]]), name="tiny")


def test_repr():
    assert str(EvolveGraph(k=3)) == (
        "EvolveGraph(x, k=3, metric=cosine, self_loops=exclude, symmetric=False, "
        "seed=0)"
    )
    assert str(EvolveGraph(torch.ones(2, 3))).startswith("EvolveGraph(Tensor[2, 3], k=")

    def embed(data):
        return data.x

    assert str(EvolveGraph(embed)).startswith("EvolveGraph(embed, k=10")


def test_adds_a_graph_and_leaves_the_rest(data):
    out = EvolveGraph(k=3)(data)
    assert torch.equal(out.ecg_edge_index, knn_graph(data.x, 3))
    assert torch.equal(out.edge_index, data.edge_index)
    assert "ecg_edge_index" not in data


@pytest.mark.parametrize("as_tensor", [True, False])
def test_sources(data, as_tensor):
    z = data.x.square()
    out = EvolveGraph(z if as_tensor else lambda data: data.x.square(), k=3)(data)
    assert torch.equal(out.ecg_edge_index, knn_graph(z, 3))
    data.z = z
    named = Compose([EvolveGraph("z", k=3)])(data)
    assert torch.equal(named.ecg_edge_index, out.ecg_edge_index)


def test_options_are_passed_on(data):
    options = {
        "metric": "euclidean",
        "self_loops": "add",
        "symmetric": True,
        "seed": 4,
    }
    data.x = data.x.round()
    out = EvolveGraph(k=2, **options)(data)
    assert torch.equal(out.ecg_edge_index, knn_graph(data.x, 2, **options))


def test_batching_offsets_the_evolved_graph(data):
    out = EvolveGraph(k=2)(data)
    batch = Batch.from_data_list([out, out])
    second = batch.ecg_edge_index[:, out.ecg_edge_index.size(1) :]
    assert torch.equal(second, out.ecg_edge_index + 20)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("z", r"'source' must be one of \['x', 'edge_index'\] \(got 'z'\)"),
        ("name", r"'source' must be one of .* \(got 'name'\)"),
        (torch.ones(19, 4), r"one row per node, 20 \(got \[19, 4\]\)"),
        (lambda data: data.x[0], r"'source' must give one row .* \(got \[4\]\)"),
        (lambda data: None, r"\(got NoneType\)"),
    ],
    ids=["absent", "text", "short", "vector", "nothing"],
)
def test_errors(data, source, message):
    with pytest.raises(InputError, match=message):
        EvolveGraph(source, k=3)(data)


def test_options_are_checked_at_once():
    with pytest.raises(InputError, match="'metric' must be one of"):
        EvolveGraph(metric="hamming")
    with pytest.raises(InputError, match="'self_loops' must be one of"):
        EvolveGraph(self_loops="maybe")
