"""The peer computes what we compute, and rows say what the contract says."""

import dataclasses
import json
import sys

import pytest
import torch

from ecg_bench.hardware_floor import Rates, measure_rates, step_floor
from ecg_bench.peak_memory import peak_mb
from ecg_bench.pyg_net import LAYERS, PyGNet
from ecg_bench.step_timing import Cell, bench_train, default_cells
from ecg_gnn import cli
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import GraphInput, NetworkSpec
from ecg_gnn.nn.benchmark_net import BenchmarkNet

CPU = torch.device("cpu")
NUM_NODES = 40
KEYS = {"dataset", "model", "hidden", "layers", "precision", "ours_s", "pyg_s"}
KEYS |= {"speedup", "floor_ratio", "peak_mb", "pyg_peak_mb"}


def edges(seed):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(NUM_NODES, (2, 160), generator=generator)
    return torch.unique(pairs, dim=1)


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("num_graphs", [1, 2])
@pytest.mark.parametrize("model", LAYERS)
def test_the_peer_gives_the_same_logits(model, num_graphs, engine):
    sizes = (5, 16, 3, 2, num_graphs)
    ours = BenchmarkNet(
        NetworkSpec(
            model=model,
            in_channels=5,
            hidden=16,
            num_classes=3,
            layers=2,
            num_graphs=num_graphs,
            dropout=0.2,
        )
    )
    ours = ours.double().eval()
    theirs = PyGNet(model, *sizes, 0.2).double().eval()
    theirs.load_state_dict(ours.state_dict())
    given = [edges(seed) for seed in range(num_graphs)]
    graphs = [GraphInput(Adjacency.from_edge_index(e, NUM_NODES)) for e in given]
    x = torch.randn(NUM_NODES, 5, dtype=torch.float64)
    with using_engine(engine):
        got = ours(x, graphs)
    torch.testing.assert_close(got, theirs(x, given), atol=1e-6, rtol=0)


@pytest.mark.parametrize("k", [0, 3])
def test_rows_have_the_contracted_keys(k):
    cell = Cell(
        dataset="minesweeper-gen:rows=8,cols=8",
        model="gat-sep",
        hidden=16,
        layers=1,
        k=k,
    )
    (row,) = bench_train([cell], device=CPU, rounds=2)
    found = dataclasses.asdict(row)
    assert found.keys() >= KEYS
    assert found["speedup"] == pytest.approx(found["pyg_s"] / found["ours_s"])
    assert found["floor_ratio"] > 0


def test_default_cells():
    assert len(default_cells(CPU, quick=False)) == 16
    quick = default_cells(CPU, quick=True)
    assert len(quick) == 8
    assert {cell.hidden for cell in quick} == {64}


def test_floor_grows_with_the_work():
    rates = Rates(flops=1e9, copy_bytes=1e9, gather_bytes=1e9, value_bytes=4)
    network = torch.nn.Linear(8, 8)
    small = step_floor(rates, network, "gcn", 8, 1, 100, [500])
    assert step_floor(rates, network, "gcn", 8, 1, 100, [5000]) > small
    assert step_floor(rates, network, "gcn", 8, 2, 100, [500]) > small
    twice = Rates(flops=2e9, copy_bytes=2e9, gather_bytes=2e9, value_bytes=4)
    half = step_floor(twice, network, "gcn", 8, 1, 100, [500])
    assert half == pytest.approx(small / 2)


def test_rates_are_positive():
    rates = measure_rates(200, 16, CPU)
    assert min(rates.flops, rates.copy_bytes, rates.gather_bytes) > 0


def test_peak_memory_sees_what_was_freed():
    def work():
        torch.ones(32 * 2**20 // 4).sum()

    assert peak_mb(work, CPU) == (None, pytest.approx(32, abs=8))


@pytest.mark.dataset
def test_command_prints_json(data_root, monkeypatch, capsys):
    arguments = ["bench", "train", "--device", "cpu", "--quick", "--json"]
    arguments += ["--dataset", "minesweeper", "--model", "sage", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["ecg-gnn", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    (row,) = json.loads(capsys.readouterr().out)
    assert row.keys() >= KEYS
    assert (row["dataset"], row["model"], row["hidden"]) == ("minesweeper", "sage", 64)


def test_command_refuses_what_it_does_not_know(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ecg-gnn", "bench", "train", "--model", "mlp"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "'model' must be one of ['gcn', 'sage'" in capsys.readouterr().err
