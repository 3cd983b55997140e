"""The C++ selection: what it proves is right, and it proves nearly everything."""

import pytest
import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact import compiled, nearest
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.nearest import Search
from ecg_gnn.kernels import using_engine

METRICS = ["cosine", "dot", "euclidean"]


@pytest.fixture(autouse=True)
def _compiler():
    if compiled._library() is None:
        pytest.skip("no C++ compiler")


@pytest.fixture
def restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def embeddings(kind, num_nodes=1500, dim=24):
    noise = randn(num_nodes, dim)
    if kind == "random":
        return noise
    if kind == "ties":
        return noise[:, :5].round().clamp(-2, 2)
    centres = randn(6, dim, seed=1)[torch.arange(num_nodes) % 6].double()
    return centres + float(kind) * noise


def search_for(kind, k=5, metric="cosine", num_rows=1024):
    return Search(canonicalise(embeddings(kind), metric), k, 3, num_rows)


def true_neighbours(search):
    nodes = torch.arange(search.canonical.num_nodes)
    return nearest.search_exactly(search, nodes, nodes)


@pytest.fixture
def left(monkeypatch):
    """Which nodes the selection leaves to exact scores."""
    found, inner = [], nearest.search_exactly

    def spy(search, groups, nodes):
        found.append(nodes)
        return inner(search, groups, nodes)

    monkeypatch.setattr(nearest, "search_exactly", spy)
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "ties", "0.1", "1e-3", "1e-6"])
@pytest.mark.parametrize("num_rows", [1024, 100])
def test_what_is_certain_is_right(metric, kind, num_rows, left):
    search = search_for(kind, metric=metric, num_rows=num_rows)
    found = nearest.nearest(search)
    count = sum(map(len, left))
    assert torch.equal(found, true_neighbours(search))
    if kind in ("random", "0.1"):
        assert count < 2
    if kind == "1e-6" and metric != "dot":
        assert count


def test_ties_are_drawn_among_all_of_them(left):
    search = search_for("ties")
    found = nearest.nearest(search)
    assert 0 < len(left[0]) < 0.95 * 1500  # those with too many to keep
    assert torch.equal(found, true_neighbours(search))


@pytest.mark.parametrize("k", [1, 40, 700])
def test_lists_that_overflow(monkeypatch, k):
    monkeypatch.setattr(compiled, "_room", lambda num_nodes, k: 2 * k)
    search = search_for("random", k)
    assert torch.equal(nearest.nearest(search), true_neighbours(search))


@pytest.mark.usefixtures("restore_threads")
@pytest.mark.parametrize("kind", ["random", "1e-3"])
def test_threads_change_nothing(kind, left):
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(nearest.nearest(search_for(kind)))
    assert all(torch.equal(other, found[0]) for other in found)
    assert all(torch.equal(nodes, left[0]) for nodes in left)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "ties", "1e-3"])
def test_engines_agree(monkeypatch, metric, kind):
    z = embeddings(kind)
    fast = knn_graph(z, 7, metric=metric, seed=4)
    monkeypatch.setattr(compiled, "propose", lambda *_: pytest.fail("not asked for"))
    with using_engine("reference"):
        plain = knn_graph(z, 7, metric=metric, seed=4)
    assert torch.equal(fast, plain)
    monkeypatch.setattr(compiled, "library", lambda *source: None)
    assert torch.equal(fast, knn_graph(z, 7, metric=metric, seed=4))


def test_room():
    assert compiled._room(22_662, 10) == 256
    assert compiled._room(22_662, 200) == 600
    assert compiled._room(100, 10) == 36
    assert compiled._room(1_000_000, 10) == 36
