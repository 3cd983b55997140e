"""The C++ selection: what it proves is right, and it proves nearly everything."""

import pytest
import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact import compiled, nearest
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.ties import Task
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
        return noise[:, :4].round().clamp(-2, 2)
    centres = randn(6, dim, seed=1)[torch.arange(num_nodes) % 6].double()
    return centres + float(kind) * noise


def task_of(kind, k=5, metric="cosine", block_size=None):
    return Task(canonicalise(embeddings(kind), metric), k, 3, block_size)


def true_neighbours(task):
    nodes = torch.arange(task.canonical.num_nodes)
    return nearest.search_groups(task, nodes, nodes)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "ties", "0.1", "1e-3", "1e-6"])
@pytest.mark.parametrize("block_size", [None, 100])
def test_what_is_sure_is_right(metric, kind, block_size):
    task = task_of(kind, metric=metric, block_size=block_size)
    found, sure = compiled.search_compiled(task)
    want = true_neighbours(task)
    assert torch.equal(found[sure], want[sure])
    assert torch.equal(nearest.nearest(task), want)
    if kind in ("random", "0.1"):
        assert sure.double().mean() > 0.999
    if kind == "1e-6" and metric != "dot":
        assert not sure.all()


def test_ties_are_drawn_among_all_of_them():
    task = task_of("ties")
    sure = compiled.search_compiled(task)[1]
    assert 0.05 < sure.double().mean() < 1  # the rest have too many to keep


@pytest.mark.parametrize("k", [1, 40, 700])
def test_lists_that_overflow(monkeypatch, k):
    monkeypatch.setattr(compiled, "_room", lambda num_nodes, k: 2 * k)
    task = task_of("random", k)
    found, sure = compiled.search_compiled(task)
    want = true_neighbours(task)
    assert torch.equal(found[sure], want[sure])
    assert torch.equal(nearest.nearest(task), want)


@pytest.mark.usefixtures("restore_threads")
@pytest.mark.parametrize("kind", ["random", "1e-3"])
def test_threads_change_nothing(kind):
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found, sure = compiled.search_compiled(task_of(kind))
        results.append((found[sure], sure))
    for other in results[1:]:
        assert torch.equal(other[0], results[0][0])
        assert torch.equal(other[1], results[0][1])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "ties", "1e-3"])
def test_engines_agree(monkeypatch, metric, kind):
    z = embeddings(kind)
    fast = knn_graph(z, 7, metric=metric, seed=4)
    monkeypatch.setattr(
        compiled, "search_compiled", lambda task: pytest.fail("not asked for")
    )
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
