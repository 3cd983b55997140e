"""A training that was killed goes on as if nothing had happened, or starts anew."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ecg_gnn.kernels import Adjacency
from ecg_gnn.system.files import content_hash
from ecg_gnn.train import LoopSettings, training
from ecg_gnn.train import state as state_module
from ecg_gnn.train.state import (
    TrainState,
    load_checkpoint,
    save_checkpoint,
)
from toy_graphs import make_network, make_task, train

CONFIG = LoopSettings(steps=12, lr=1e-2, checkpoint_seconds=0.0)
CASES = {
    "benchmark": {"backbone": "benchmark", "model": "gat-sep"},
    "tuned": {"backbone": "tuned", "model": "gcn"},  # BatchNorm has running statistics
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "checkpoint.safetensors"


def small_task():
    return make_task(3, evolved=True, drop_edge=0.5)


def run(case, path=None, *, config=CONFIG, seed=0, task=None):
    """Numbers and weights of one training, in a form that compares to the bit."""
    task = task or small_task()
    network = make_network(task, **case)
    result = train(network, task, config, seed=seed, checkpoint=path)
    weights = {key: value.tolist() for key, value in network.state_dict().items()}
    return replace(result, seconds=0.0), weights


class InterruptError(Exception):
    """What stops a training in these tests."""


def interrupt(case, path, after, **options):
    """Train until ``after`` steps are done, then break off."""
    step, calls = training.run_step, []

    def breaking_step(*args):
        if len(calls) == after:
            raise InterruptError
        calls.append(None)
        step(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "run_step", breaking_step)
        with pytest.raises(InterruptError):
            run(case, path, **options)


def steps_done(path):
    with safe_open(path, framework="pt") as file:
        return int(file.metadata()["done"])


# --- Resuming -------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 5, 11])
def test_resumed_equals_uninterrupted(case, path, after):
    whole = run(case)
    interrupt(case, path, after)
    assert steps_done(path) == after
    assert run(case, path) == whole
    assert not path.exists()


def weighted(task, scale):
    """The same task, where evolved edges weigh differently."""
    edges = task.graphs[1].adjacency.edge_index()
    weights = scale * (1 + torch.arange(edges.size(1)) % 5)
    adjacency = Adjacency.from_edge_index(edges, task.x.size(0), edge_weight=weights)
    graphs = [task.graphs[0], replace(task.graphs[1], adjacency=adjacency)]
    return replace(task, graphs=graphs)


def test_weights_of_edges_are_part_of_a_training(case, path):
    task, other = (weighted(small_task(), scale) for scale in (1.0, 2.0))
    whole = run(case, task=task)
    interrupt(case, path, 5, task=task)
    assert run(case, path, task=task) == whole
    interrupt(case, path, 5, task=task)
    with pytest.warns(UserWarning, match="belongs to another training"):
        run(case, path, task=other)


def test_resuming_makes_only_the_missing_steps(case, path, monkeypatch):
    interrupt(case, path, 8)
    seeds = []
    step = training.run_step
    monkeypatch.setattr(
        training,
        "run_step",
        lambda *args: (seeds.append(torch.initial_seed()), step(*args)),
    )
    run(case, path)
    assert len(seeds) == len(set(seeds)) == 4


def test_interrupted_twice(case, path):
    whole = run(case)
    interrupt(case, path, 3)
    interrupt(case, path, 4)
    assert steps_done(path) == 7
    assert run(case, path) == whole


def test_interrupted_after_the_last_step(case, path, monkeypatch):
    whole = run(case)

    def break_off(**_fields):
        raise InterruptError

    with monkeypatch.context() as patch:
        patch.setattr(training, "TrainResult", break_off)
        with pytest.raises(InterruptError):
            run(case, path)
    assert steps_done(path) == CONFIG.steps
    assert run(case, path) == whole


KILLED = """
import os, signal, sys
from pathlib import Path
from ecg_gnn.train import state, training
from train.test_checkpoint import CASES, run

moment, case, path = sys.argv[1:]
step, save_file, calls = training.run_step, state.save_file, []

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def deadly_step(*args):
    calls.append(None)
    step(*args)
    if moment == "step" and len(calls) == 7:
        kill()

def deadly_save(tensors, target, metadata):
    save_file(tensors, target, metadata)
    if moment == "write" and metadata["done"] == "7":
        os.truncate(target, os.path.getsize(target) // 2)
        kill()

training.run_step, state.save_file = deadly_step, deadly_save
run(CASES[case], Path(path))
"""


@pytest.mark.parametrize(
    ("moment", "name"), [("step", "benchmark"), ("write", "tuned")]
)
def test_killed_process_is_resumed(moment, name, path):
    command = [sys.executable, "-c", KILLED, moment, name, str(path)]
    tests = Path(__file__).parents[1]
    child = subprocess.run(command, cwd=tests, capture_output=True, timeout=120)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert steps_done(path) == 6
    assert run(CASES[name], path) == run(CASES[name])


def test_checkpoints_change_nothing_and_are_removed(case, path):
    assert run(case, path) == run(case)
    assert list(path.parent.iterdir()) == []


def test_none_is_written_before_its_time(case, path):
    patient = replace(CONFIG, checkpoint_seconds=3600.0)
    interrupt(case, path, 5, config=patient)
    assert not path.exists()


def test_no_path_no_file(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    run(case)
    assert sorted(tmp_path.rglob("*")) == before


def test_time_is_counted_over_interruptions(path):
    state = TrainState(torch.nn.Linear(2, 2), 1e-3, 0.0, 5)
    state.done, state.seconds = 2, 1234.5
    save_checkpoint(path, state, "this one")
    fresh = TrainState(torch.nn.Linear(2, 2), 1e-3, 0.0, 5)
    assert load_checkpoint(path, fresh, "this one")
    assert (fresh.done, fresh.seconds) == (2, 1234.5)


# --- Checkpoints that must not be used ------------------------------------------------


def damage(path, how):
    content = path.read_bytes()
    if how == "cut in half":
        path.write_bytes(content[: len(content) // 2])
    elif how == "header only":
        path.write_bytes(content[:50])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "garbage":
        path.write_bytes(b"\x00garbage" * 100)
    elif how == "no metadata":
        save_file({"something": torch.ones(3)}, path)


@pytest.mark.parametrize(
    "how", ["cut in half", "header only", "empty", "garbage", "no metadata"]
)
def test_damaged_checkpoint_costs_a_warning(path, how):
    case = CASES["tuned"]
    interrupt(case, path, 6)
    damage(path, how)
    with pytest.warns(UserWarning, match=r"checkpoint\.safetensors .*: starting over"):
        again = run(case, path)
    assert again == run(case)
    assert not path.exists()


def other_labels():
    task = small_task()
    return replace(task, y=task.y.flip(0))


def other_features():
    task = small_task()
    return replace(task, x=-task.x)


def other_graph():
    task = small_task()
    return replace(task, graphs=task.graphs[::-1])


def other_drop_edge():
    return make_task(3, evolved=True, drop_edge=0.25)


def other_split():
    task = small_task()
    return replace(task, train_index=task.val_index, val_index=task.train_index)


FOREIGN = {
    "seed": {"seed": 1},
    "learning rate": {"config": replace(CONFIG, lr=2e-2)},
    "steps": {"config": replace(CONFIG, steps=13)},
    "labels": {"task": other_labels},
    "features": {"task": other_features},
    "graph": {"task": other_graph},
    "drop_edge": {"task": other_drop_edge},
    "split": {"task": other_split},
}


@pytest.mark.parametrize("what", FOREIGN)
def test_checkpoint_of_another_training_is_not_used(path, what):
    case = CASES["tuned"]
    changes = FOREIGN[what]
    changes = {key: v() if callable(v) else v for key, v in changes.items()}
    interrupt(case, path, 6, **changes)
    with pytest.warns(UserWarning, match="belongs to another training: starting over"):
        again = run(case, path)
    assert again == run(case)


def test_checkpoint_of_another_initialisation_is_not_used(path):
    case = CASES["tuned"]
    interrupt(case, path, 6)
    task = small_task()
    networks = [make_network(task, seed=1, **case) for _ in range(2)]
    with pytest.warns(UserWarning, match="belongs to another training"):
        again = train(networks[0], task, CONFIG, seed=0, checkpoint=path)
    expected = train(networks[1], task, CONFIG, seed=0)
    assert again.losses == expected.losses


def test_checkpoint_of_another_network_is_not_used(path):
    interrupt(CASES["benchmark"], path, 6)
    with pytest.warns(UserWarning, match="belongs to another training"):
        again = run(CASES["tuned"], path)
    assert again == run(CASES["tuned"])


# --- The file -------------------------------------------------------------------------


def test_file_is_plain_safetensors(case, path):
    interrupt(case, path, 4)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    assert set(metadata) == {"fingerprint", "done", "seconds"}
    assert all(isinstance(value, str) for value in metadata.values())
    kinds = {name.partition("/")[0] for name in header}
    assert kinds == {"now", "best", "optimizer", "buffer"}
    # After the header there are tensors and nothing else.
    assert len(content) == 8 + length + max(
        t["data_offsets"][1] for t in header.values()
    )


def test_old_file_stays_until_the_new_one_is_complete(case, path, monkeypatch):
    interrupt(case, path, 4)
    before, seen = path.read_bytes(), []

    def fail(_tensors, target, _metadata):
        Path(target).write_bytes(b"half")
        seen.append(path.read_bytes())
        raise OSError("no space left")

    monkeypatch.setattr(state_module, "save_file", fail)
    with pytest.warns(UserWarning, match=r"\(no space left\): this training cannot"):
        result = run(case, path)
    assert set(seen) == {before}
    assert list(path.parent.iterdir()) == []
    assert result == run(case)


def test_content_hash_tells_values_types_and_shapes_apart():
    base = torch.arange(6.0)
    others = [
        base + 1,
        base.double(),
        base.bfloat16(),
        base.view(2, 3),
        base.int(),
        base[:0],
        torch.tensor(0.0),
        base > 2,
    ]
    hashes = {content_hash([tensor]) for tensor in [base, *others]}
    assert len(hashes) == 1 + len(others)
    assert content_hash([base]) == content_hash([base.clone()])
    assert content_hash([base, base]) != content_hash([base])
    assert content_hash([base.view(2, 3).t()]) != content_hash([base.view(3, 2)])
