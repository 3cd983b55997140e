"""Several trainings in turns give the numbers of one after another."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from ecg_gnn.train import LoopSettings, Training, loop, train_together, training
from toy_graphs import make_network, make_task, train

CONFIG = LoopSettings(lr=1e-2, checkpoint_seconds=0.0)
JOBS = {
    "a": {"steps": 12, "seed": 0, "model": "gcn"},
    "b": {"steps": 5, "seed": 1, "model": "gat-sep"},
    "c": {"steps": 9, "seed": 0, "model": "gcn", "moved": True},
    "d": {"steps": 1, "seed": 3, "backbone": "tuned", "model": "sage"},
}


def job(name, device="cpu"):
    """A network, its task, config and seed."""
    settings = dict(JOBS[name])
    steps, seed = settings.pop("steps"), settings.pop("seed")
    task = make_task(3, evolved=True, drop_edge=0.5)
    if settings.pop("moved", False):  # the same graph, another split
        task = replace(task, train_index=task.val_index, val_index=task.train_index)
    network = make_network(task, seed=seed, **settings).to(device)
    task = task.to(torch.device(device))
    return network, task, replace(CONFIG, steps=steps), seed


def start(name, folder=None, device="cpu"):
    network, task, config, seed = job(name, device)
    path = None if folder is None else folder / f"{name}.safetensors"
    return Training(network, task, config, seed=seed, checkpoint=path)


def alone(name, device="cpu"):
    """What a training gives that has the device for itself."""
    network, task, config, seed = job(name, device)
    return numbers(train(network, task, config, seed=seed)), weights(network)


def numbers(result):
    return replace(result, seconds=0.0)


def weights(network):
    return {name: tensor.tolist() for name, tensor in network.state_dict().items()}


def together(trainings):
    results = train_together(trainings)
    pairs = zip(results, trainings, strict=True)
    return [(numbers(result), weights(each.network)) for result, each in pairs]


def test_jobs_differ():
    assert len({tuple(alone(name)[0].losses) for name in JOBS}) == len(JOBS)


@pytest.mark.parametrize("names", ["abcd", "dcba", "ac", "aa", "b"])
def test_equals_one_after_another(names):
    assert together([start(name) for name in names]) == [alone(name) for name in names]


def test_on_a_gpu_as_well(device):
    """Queues of their own, recorded steps: the same numbers."""
    if device.type == "cpu":
        pytest.skip("needs a GPU; for CPUs see above, to the bit")
    results = train_together([start(name, device=device) for name in "abc"])
    for name, result in zip("abc", results, strict=True):
        expected, _ = alone(name, device)
        assert result.losses == pytest.approx(expected.losses, abs=1e-5)


def test_takes_turns_until_each_is_done(monkeypatch):
    order, step = [], training.run_step
    names = {}

    def spy(network, *args):
        order.append(names[id(network)])
        step(network, *args)

    monkeypatch.setattr(training, "run_step", spy)
    trainings = [start(name) for name in "abd"]
    names |= {id(t.network): n for t, n in zip(trainings, "abd", strict=True)}
    train_together(trainings)
    assert "".join(order) == "abd" + "ab" * 4 + "a" * 7


def test_networks_end_in_evaluation_mode_and_random_state_is_left_alone():
    torch.manual_seed(5)
    trainings = [start(name) for name in "ab"]
    before = torch.get_rng_state()
    train_together(trainings)
    assert torch.equal(before, torch.get_rng_state())
    assert not any(each.network.training for each in trainings)


# --- Checkpoints ----------------------------------------------------------------------


class InterruptError(Exception):
    """What stops the trainings in these tests."""


def interrupt(trainings, after, monkeypatch):
    """Break off when so many steps are done, of all together."""
    step, calls = training.run_step, []

    def breaking_step(*args):
        if len(calls) == after:
            raise InterruptError
        calls.append(None)
        step(*args)

    with monkeypatch.context() as patch:
        patch.setattr(training, "run_step", breaking_step)
        with pytest.raises(InterruptError):
            train_together(trainings)


@pytest.mark.parametrize("after", [1, 3, 8, 20])
def test_resumed_equals_uninterrupted(after, tmp_path, monkeypatch):
    interrupt([start(name, tmp_path) for name in "abc"], after, monkeypatch)
    resumed = [start(name, tmp_path) for name in "abc"]
    # Checkpoints are written after each round of all.
    assert [each.state.done for each in resumed] == done_after(after, (12, 5, 9))
    assert together(resumed) == [alone(name) for name in "abc"]
    assert not list(tmp_path.iterdir())


def done_after(steps, lengths):
    """Steps of each after the last whole round."""
    done, rounds = 0, 0
    while True:
        turn = sum(length > rounds for length in lengths)
        if done + turn > steps:
            return [min(rounds, length) for length in lengths]
        done, rounds = done + turn, rounds + 1


def test_one_may_be_resumed_beside_a_new_one(tmp_path, monkeypatch):
    interrupt([start("a", tmp_path)], 7, monkeypatch)
    trainings = [start("b", tmp_path), start("a", tmp_path)]
    assert [each.state.done for each in trainings] == [0, 7]
    assert together(trainings) == [alone("b"), alone("a")]


def test_one_that_is_already_done(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            training, "TrainResult", lambda **_: pytest.fail("break off here")
        )
        with pytest.raises(pytest.fail.Exception):
            train_together([start("b", tmp_path)])
    finished = start("b", tmp_path)
    assert finished.done
    assert together([finished, start("c")]) == [alone("b"), alone("c")]


# --- Progress and time ----------------------------------------------------------------


def test_progress_and_seconds_are_shared(monkeypatch):
    ticks = iter(i * 0.4 for i in range(10_000))
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(loop, "time", clock)
    calls = []
    results = train_together(
        [start(name) for name in "ab"], progress=lambda *report: calls.append(report)
    )
    assert [done for done, _, _ in calls] == [6, 11, 14, 17]  # every third round
    assert {total for _, total, _ in calls} == {12 + 5}
    for done, _, best in calls:
        a, b = (min(done // 2, 5), min(done // 2, 5)) if done < 11 else (done - 5, 5)
        scores = results[0].val_scores[:a] + results[1].val_scores[:b]
        assert best == max(scores)
    # Twelve rounds and the wait at the end, each of 0.4 s, whoever it was for.
    assert sum(result.seconds for result in results) == pytest.approx(0.4 * 13)
    assert results[1].seconds == pytest.approx(0.4 * 5 / 2 + 0.4 / 2)
