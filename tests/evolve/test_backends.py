"""Every backend of the table, and which of them ``auto`` means."""

import warnings
from typing import get_args

import pytest
import torch

from ecg_gnn import config
from ecg_gnn.evolve import EvolveGraph, backends, knn_graph, knn_search
from ecg_gnn.evolve.backends import (
    BACKENDS,
    EXACT_NODES,
    KNN_BACKENDS,
    choose_backend,
    exact_seconds,
)
from ecg_gnn.system.checks import InputError
from evolve.knn_cases import METRICS, clusters, embeddings, randn

PLENTY = 1 << 50


def is_found(name):
    return lambda package: object() if package == name else None


@pytest.fixture
def _faiss(monkeypatch):
    monkeypatch.setattr(backends, "find_spec", is_found("faiss"))
    monkeypatch.setattr(backends, "available_bytes", lambda device: PLENTY)


@pytest.fixture
def _no_faiss(_faiss, monkeypatch):
    monkeypatch.setattr(backends, "find_spec", is_found(None))


@pytest.fixture(params=BACKENDS)
def backend(request):
    """The name of each entry of the table in turn."""
    if request.param != "exact":
        pytest.importorskip("faiss")
    return request.param


@pytest.mark.parametrize("metric", METRICS)
def test_every_backend_finds_the_neighbours(backend, metric):
    z = clusters(600, 16, 0.3, count=12)
    graph = knn_search(z, 7, metric=metric, knn=backend, seed=1)
    want = knn_graph(z, 7, metric=metric, seed=1)
    assert graph.method == backend
    assert torch.equal(graph.edge_index[1], want[1])
    share = (graph.edge_index[0] == want[0]).double().mean()
    assert share == 1 if backend == "exact" else share > 0.9
    assert (graph.recall is None) == (backend == "exact")
    if graph.recall is not None:
        assert 0.95 <= graph.recall <= 1


def test_every_backend_draws_among_ties_and_tells_its_progress(backend):
    z, calls = embeddings("duplicates", 200), []
    options = {"knn": backend, "seed": 4}
    graph = knn_search(z, 3, progress=lambda *done: calls.append(done), **options)
    assert torch.equal(graph.edge_index, knn_graph(z, 3, seed=4))
    assert calls == sorted(calls)
    assert calls[-1] == (200, 200)
    assert torch.equal(knn_search(z, 3, **options).edge_index, graph.edge_index)


def test_every_backend_is_named_wherever_one_can_choose(backend):
    assert backend in config.declared()["evolve.knn"].help
    assert EvolveGraph(knn=backend).knn == backend
    assert config.EvolveConfig(knn=backend).knn == backend
    assert choose_backend(backend, 1000, 8, "cpu") == backend


def test_names_are_those_of_the_settings():
    allowed = get_args(config.declared()["evolve.knn"].type)
    assert allowed == KNN_BACKENDS == ("auto", *BACKENDS)


def test_a_new_entry_is_a_new_backend(monkeypatch):
    """Nothing else knows the names."""
    z, want = randn(30, 4), torch.arange(90).view(30, 3) % 30

    def search(asked):
        assert (asked.k, asked.canonical.num_nodes) == (3, 30)
        return want, 0.5

    monkeypatch.setattr(backends, "find_spec", is_found("faiss"))
    monkeypatch.setitem(BACKENDS, "new", search)
    for module in ("backends", "knn", "graph"):
        names = ("auto", *BACKENDS)
        monkeypatch.setattr(f"ecg_gnn.evolve.{module}.KNN_BACKENDS", names)
    graph = knn_search(z, 3, knn="new")
    assert (graph.method, graph.recall) == ("new", 0.5)
    assert torch.equal(graph.edge_index[0].view(30, 3), want)


@pytest.mark.parametrize(
    ("num_nodes", "dim", "device", "want"),
    [
        (EXACT_NODES, 100_000, "cpu", "exact"),
        (110_000, 16, "cpu", "exact"),
        (110_000, 512, "cpu", "ivf"),
        (400_000, 16, "cpu", "ivf"),
        (150_000, 512, "cuda", "exact"),
        (1_000_000, 16, "cuda", "exact"),
        (2_000_000, 16, "cuda", "ivf"),
    ],
)
@pytest.mark.usefixtures("_faiss")
def test_auto_is_exact_while_that_does_not_take_long(num_nodes, dim, device, want):
    assert choose_backend("auto", num_nodes, dim, device) == want


@pytest.mark.usefixtures("_no_faiss")
def test_a_gpu_needs_faiss_for_an_index():
    with pytest.warns(UserWarning, match=r"takes about 81 s \(pip install"):
        assert choose_backend("auto", 2_000_000, 64, "cuda") == "exact"
    with pytest.raises(InputError, match="'knn' 'ivf' needs the package 'faiss'"):
        choose_backend("ivf", 1000, 32, "cuda")


@pytest.mark.usefixtures("_no_faiss")
def test_auto_without_faiss_says_how_long_it_takes():
    with pytest.warns(UserWarning, match=r"takes about 61 min \(pip install 'ecg-gn"):
        assert choose_backend("auto", 1_000_000, 512, "cpu") == "exact"


@pytest.mark.usefixtures("_faiss")
def test_auto_without_memory_for_an_index_says_so(monkeypatch):
    monkeypatch.setattr(backends, "available_bytes", lambda device: 1 << 30)
    with pytest.warns(UserWarning, match=r"needs 4.4 GiB, 1.0 GiB is available"):
        assert choose_backend("auto", 1_000_000, 512, "cpu") == "exact"


@pytest.mark.parametrize("knn", ["exact", "ivf", "hnsw"])
@pytest.mark.usefixtures("_faiss")
def test_what_is_asked_for_is_done(knn):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_backend(knn, 10**9, 512, "cpu") == knn


@pytest.mark.usefixtures("_faiss")
def test_an_index_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(backends, "available_bytes", lambda device: 1 << 30)
    with pytest.raises(InputError, match=r"narrower by a factor of 4.4 \(got 'ivf'"):
        choose_backend("ivf", 1_000_000, 512, "cpu")


def test_unknown_names_are_refused():
    with pytest.raises(
        InputError, match=r"'knn' must be one of \['auto', 'exact', 'iv"
    ):
        knn_search(randn(5, 2), 1, knn="fast")


def test_graphs_say_what_they_were_found_by():
    graph = knn_search(randn(30, 4), 3)
    assert (graph.method, graph.recall) == ("exact", None)


@pytest.mark.parametrize(
    ("nodes", "dim", "seconds"), [(100_000, 32, 10.0), (50_000, 512, 8.2)]
)
def test_seconds_are_those_measured(nodes, dim, seconds):
    """In ``benchmarks/scale/knn_rates_cpu.json``."""
    assert exact_seconds(nodes, dim, "cpu") == pytest.approx(seconds, rel=0.2)


def test_narrow_rows_are_not_taken_for_free():
    """Selecting costs as much for one number as for a hundred."""
    wide, narrow = (exact_seconds(10**6, dim, "cpu") for dim in (32, 1))
    assert narrow > 0.7 * wide


def test_other_devices_are_taken_for_cpus():
    assert exact_seconds(10**6, 64, "mps") == exact_seconds(10**6, 64, "cpu")
