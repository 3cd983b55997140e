"""Which search ``auto`` means, and what it says about it."""

import warnings

import pytest
import torch

from ecg_gnn.evolve import choice, knn_search, memory
from ecg_gnn.evolve.choice import EXACT_NODES, choose_method, duration
from ecg_gnn.system.checks import InputError
from evolve.knn_cases import randn

PLENTY = 1 << 50


@pytest.fixture(autouse=True)
def _faiss(monkeypatch):
    monkeypatch.setattr(choice, "faiss_installed", lambda: True)
    monkeypatch.setattr(choice, "available_bytes", lambda device: PLENTY)


@pytest.mark.parametrize(
    ("num_nodes", "dim", "device", "want"),
    [
        (EXACT_NODES, 100_000, "cpu", "exact"),
        (300_000, 512, "cpu", "exact"),
        (500_000, 512, "cpu", "ivf"),
        (500_000, 16, "cpu", "exact"),
        (150_000, 512, "cuda", "exact"),
        (400_000, 16, "cuda", "exact"),
        (1_000_000, 16, "cuda", "ivf"),
        (10_000_000, 16, "cuda", "ivf"),
    ],
)
def test_auto_is_exact_while_that_does_not_take_long(num_nodes, dim, device, want):
    assert choose_method("auto", num_nodes, dim, device, PLENTY) == want


def test_auto_counts_on_streaming_where_memory_is_short():
    assert choose_method("auto", 300_000, 512, "cpu", 1 << 30) == "ivf"
    assert choose_method("auto", EXACT_NODES, 512, "cpu", 1 << 20) == "exact"


def test_an_h200_has_room_for_ten_million_rows():
    budget = int(0.8 * 139 * 2**30)
    assert choose_method("ivf", 10_000_000, 512, "cuda", budget) == "ivf"
    with pytest.raises(InputError, match=r"which needs 200.3 GiB where 111.2 GiB can"):
        choose_method("ivf", 20_000_000, 512, "cuda", budget)
    with pytest.warns(UserWarning, match=r"needs 200.3 GiB, 111.2 GiB can be had"):
        assert choose_method("auto", 20_000_000, 512, "cuda", budget) == "exact"


def test_a_gpu_needs_faiss_for_a_small_world_only(monkeypatch):
    monkeypatch.setattr(choice, "faiss_installed", lambda: False)
    assert choose_method("auto", 10_000_000, 32, "cuda", PLENTY) == "ivf"
    with pytest.raises(InputError, match="'knn' 'hnsw' needs the package 'faiss'"):
        choose_method("hnsw", 1000, 32, "cuda", PLENTY)


def test_auto_without_faiss_says_how_long_it_takes(monkeypatch):
    monkeypatch.setattr(choice, "faiss_installed", lambda: False)
    with pytest.warns(
        UserWarning, match=r"takes about 61 minutes \(pip install 'ecg-gn"
    ):
        assert choose_method("auto", 1_000_000, 512, "cpu", PLENTY) == "exact"


def test_auto_without_memory_for_an_index_says_so(monkeypatch):
    monkeypatch.setattr(choice, "available_bytes", lambda device: 1 << 30)
    with pytest.warns(UserWarning, match=r"needs 4.4 GiB, 1.0 GiB can be had"):
        assert choose_method("auto", 1_000_000, 512, "cpu", PLENTY) == "exact"


@pytest.mark.parametrize("knn", ["exact", "ivf", "hnsw"])
def test_what_is_asked_for_is_done(knn):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_method(knn, 10**9, 512, "cpu", 1 << 20) == knn


def test_an_index_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(choice, "available_bytes", lambda device: 1 << 30)
    with pytest.raises(InputError, match=r"narrower by a factor of 4.4 \(got 'ivf'"):
        choose_method("ivf", 1_000_000, 512, "cpu", PLENTY)


def test_unknown_names_are_refused():
    with pytest.raises(
        InputError, match=r"'knn' must be one of \['auto', 'exact', 'iv"
    ):
        knn_search(randn(5, 2), 1, knn="fast")


def test_graphs_say_what_they_were_found_by():
    graph = knn_search(randn(30, 4), 3)
    assert (graph.method, graph.recall) == ("exact", None)


def test_durations():
    assert duration(5) == "5 seconds"
    assert duration(700) == "12 minutes"
    assert duration(8000) == "2 hours"
    assert duration(400_000) == "5 days"


def test_budgets(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(memory, "available_bytes", lambda device: 1000)
    assert memory.memory_budget(None, cpu) == 500
    assert memory.memory_budget(None, torch.device("cuda")) == 800
    assert memory.memory_budget(7, cpu) == 7
    with pytest.raises(InputError, match=r"'memory' must be in \[1, inf\) \(got 0\)"):
        memory.memory_budget(0, cpu)


def test_available_memory_is_below_the_machines(monkeypatch, tmp_path):
    whole = memory.available_bytes(torch.device("cpu"))
    assert 1 << 20 < whole < 1 << 50
    monkeypatch.setattr(memory, "_free_in_cgroup", lambda limit, used: 12345)
    assert memory.available_bytes(torch.device("cpu")) == 12345


@pytest.mark.parametrize(
    ("error", "ran_out"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] can't allocate memory: you tried"), True),
        (RuntimeError("shapes do not match"), False),
    ],
)
def test_out_of_memory(error, ran_out):
    assert memory.out_of_memory(error) is ran_out
