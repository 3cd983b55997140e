"""All ways of the exact search: the same neighbours, the same draws among ties."""

import pytest
import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact import nearest
from ecg_gnn.evolve.exact.canonical import canonicalise, full_precision
from ecg_gnn.evolve.exact.nearest import Search
from ecg_gnn.kernels import using_engine

METRICS = ["cosine", "dot", "euclidean"]


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def clusters(kind, num_nodes=1200):
    """Six far centres with something very small around them."""
    label = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(2)) % 6
    centres = (1 << 15) * torch.eye(6, 8)[label].double()
    if kind == "noise":
        return centres + randn(num_nodes, 8)
    offsets = torch.randint(-3, 4, (num_nodes, 8), generator=torch.Generator())
    return centres + offsets  # many ties


def true_neighbours(search):
    grid = search.canonical.grid
    nodes = torch.arange(len(grid), device=grid.device)
    return nearest.search_exactly(search, nodes, nodes)


@pytest.fixture
def searched_exactly(monkeypatch):
    """How many nodes float32 scores could not decide."""
    counts, inner = [], nearest.search_exactly

    def spy(search, groups, nodes):
        counts.append(nodes.numel())
        return inner(search, groups, nodes)

    monkeypatch.setattr(nearest, "search_exactly", spy)
    return counts


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("kind", ["noise", "ties"])
@pytest.mark.parametrize("metric", METRICS)
def test_finds_what_the_first_look_could_not(
    metric, kind, engine, device, searched_exactly
):
    search = Search(canonicalise(clusters(kind).to(device), metric), 4, 7)
    want = true_neighbours(search)
    searched_exactly.clear()
    with using_engine(engine):
        assert torch.equal(nearest.nearest(search), want)
    # Far along a centre is near to everybody in its cluster.
    assert metric == "dot" or sum(searched_exactly) > 600


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("metric", METRICS)
def test_float32_decides_nearly_everything(metric, engine, device, searched_exactly):
    z = randn(6, 24)[torch.arange(1500) % 6] + 0.1 * randn(1500, 24, seed=1)
    search = Search(canonicalise(z.to(device), metric), 5, 3)
    with using_engine(engine):
        found = nearest.nearest(search)
    assert sum(searched_exactly) < 0.01 * len(z)
    assert torch.equal(found, true_neighbours(search))


def test_many_tiny_clusters(device):
    z = 1000 * randn(64, 8, seed=1)[torch.arange(640) % 64] + 1e-4 * randn(640, 8)
    search = Search(canonicalise(z.double().to(device), "euclidean"), 9, 0)
    assert torch.equal(nearest.nearest(search), true_neighbours(search))


@pytest.fixture
def restore_precision():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("restore_precision")
@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_settings_come_back(precision, device):
    torch.set_float32_matmul_precision(precision)
    with full_precision(device):
        inside = torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)
    assert inside.dtype == torch.float32
    assert torch.get_float32_matmul_precision() == precision


@pytest.mark.usefixtures("restore_precision")
def test_reduced_precision_outside_changes_nothing(device):
    z = torch.randn(500, 32, generator=torch.Generator().manual_seed(0))
    want = knn_graph(z, 5)
    torch.set_float32_matmul_precision("medium")
    with torch.autocast(device.type, dtype=torch.bfloat16):
        got = knn_graph(z.to(device), 5)
    assert torch.equal(got.cpu(), want)
