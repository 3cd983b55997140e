"""Several processes: equal to one, also when one of them is killed on the way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ecg_gnn.config import RunConfig, TrainConfig
from ecg_gnn.study import RunFolder, one_run, run
from ecg_gnn.system import machine
from ecg_gnn.system.checks import InputError
from small_runs import small_config

TESTS = Path(__file__).parents[1]
RUN = ["run", "--dataset", "minesweeper-gen:rows=8,cols=8", "--splits", "0"]
RUN += ["--embedding", "features", "--model", "sage", "--hidden", "8", "--layers", "2"]
RUN += ["--k", "3", "--dropout", "0", "--drop-edge", "0", "--steps", "8"]
RUN += ["--batch-size", "10", "--fanout", "2,3", "--eval-every", "2"]


def torchrun(*arguments):
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launch += ["--max-restarts", "1", "--standalone"]
    return subprocess.run(
        [sys.executable, *launch, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=TESTS,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def records(folder):
    found = sorted((folder / "records").glob("*.json"))
    return [json.loads(path.read_text()) for path in found]


def test_two_processes_one_killed_equal_one(tmp_path):
    both, alone, notes = (tmp_path / name for name in ("both", "alone", "notes"))
    notes.mkdir()
    done = torchrun(TESTS / "killed_rank.py", notes, *RUN, "--out", both)
    assert done.returncode == 0, done.stderr
    assert (notes / "killed").exists()
    lines = (notes / "rank0.txt").read_text().split()
    steps = [int(line) for line in lines if line != "equal"]
    # The first life ends in step 5, where the second goes on; then three more variants.
    assert steps == [*range(6), *range(5, 8), *range(8), *range(8), *range(8)]
    assert lines.count("equal") == len(steps) - 1
    assert done.stdout.count("test ROC AUC (%)") == 1  # only the first one prints
    train = TrainConfig(steps=8, batch_size=10, fanout=(2, 3), eval_every=2)
    config = json.loads((both / "config.json").read_text())
    assert RunConfig.from_dict(config).train.fanout == train.fanout
    run(RunConfig.from_dict(config), out=alone)
    assert len(records(both)) == 4
    for shared, single in zip(records(both), records(alone), strict=True):
        assert shared["provenance"]["processes"] == 2
        assert shared["losses"] == pytest.approx(single["losses"], abs=1e-6)
        assert shared["evolved_statistics"] == single["evolved_statistics"]
        for key in ("val", "test", "best_step", "val_scores", "test_scores"):
            assert shared[key] == pytest.approx(single[key], abs=1e-9), key
    assert not list(both.rglob("*.safetensors"))


# --- One process ----------------------------------------------------------------------


def test_one_process_is_alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with machine.joined() as own:
        assert own == (0, 1)
        assert own.is_first
    tensor = torch.ones(2)
    assert machine.add_up(tensor) is tensor
    machine.average([tensor])
    assert tensor.tolist() == [1, 1]
    assert machine.gather_rows(tensor[:, None], [2])[0].tolist() == [[1], [1]]
    machine.agree("steps", 3)
    assert machine.all_have(True)
    assert not machine.all_have(False)
    with machine.first_goes_first():
        machine.wait_for_all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_collectives_on_a_gpu_go_through_nccl(monkeypatch, tmp_path):
    """A group of one is all that one GPU can have: no two of nccl's share a device."""
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group(machine.backend(), store=store, rank=0, world_size=1)
    # Alone, nothing would be sent.
    monkeypatch.setattr(machine, "world", lambda: machine.World(0, 2))
    try:
        for device in ("cuda", "cpu"):
            tensor = torch.arange(6.0, device=device).view(3, 2)
            assert machine.add_up(tensor.clone()).equal(tensor)
            (rows,) = machine.gather_rows(tensor, [3])
            assert rows.equal(tensor)
            assert rows.device == tensor.device
        machine.wait_for_all()
        assert "cuda:nccl" in str(dist.get_backend_config())
    finally:
        dist.destroy_process_group()


def test_processes_that_differ_are_one_line(monkeypatch):
    rows = [torch.tensor([[3]]), torch.tensor([[0]])]
    monkeypatch.setattr(machine, "gather_rows", lambda *_: rows)
    with pytest.raises(InputError, match=r"steps must be the same .* \(got \[3, 0\]\)"):
        machine.agree("steps", 3)


# --- What cannot be shared ------------------------------------------------------------


@pytest.fixture
def second_of_two(monkeypatch):
    monkeypatch.setattr(one_run, "world", lambda: machine.World(1, 2))


def config_of(device="cpu", **train):
    config = small_config()
    return RunConfig.from_dict(
        config.to_dict() | {"device": device, "train": {"steps": 2, **train}}
    )


@pytest.mark.usefixtures("second_of_two")
@pytest.mark.parametrize(
    ("settings", "jobs", "message"),
    [
        ({}, 1, r"'batch_size' must be at least 1 in 2 processes"),
        ({"batch_size": 4}, 2, r"'jobs' must be 1 in 2 processes \(got 2\)"),
        ({"batch_size": 4, "device": "cuda:1"}, 1, r"'device' must be .*'cuda:1'\)"),
    ],
)
def test_refuses_what_cannot_be_shared(settings, jobs, message):
    with pytest.raises(InputError, match=message):
        one_run.check_joined(config_of(**settings), jobs)


def test_only_the_first_process_writes(tmp_path):
    folder = RunFolder(tmp_path / "out", is_writer=False)
    folder.claim("id", {})
    folder.store("name", None)
    assert not (tmp_path / "out").exists()
    assert folder.load("name") is None
