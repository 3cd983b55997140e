"""The transform: the same graph as the function, beside the input graph."""

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import Compose

from ecg_gnn.evolve import EvolveGraph, knn_graph
from ecg_gnn.system.checks import InputError


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
        (torch.ones(19, 4), r"'source' must give one row per node, 20 \(got 19\)"),
        (lambda data: data.x[0], r"'source' must give a tensor \[N, D\] \(got \[4\]\)"),
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
