"""One schedule of evaluations: scores where they are due, and the same training."""

import math
from dataclasses import replace

import pytest
import torch

from ecg_gnn.train import BatchPlan, LoopSettings, Training, train_together
from ecg_gnn.train.training import run_step, scores
from no_waiting import NoWaiting
from no_waiting import start as start_state
from toy_graphs import make_network, make_task

STEPS, DUE = 11, [4, 8, 11]
CONFIG = LoopSettings(steps=STEPS, lr=1e-2, checkpoint_seconds=0.0)


def start(device, eval_every, checkpoint=None, seed=0):
    task = make_task(3, evolved=True, drop_edge=0.5).to(device)
    network = make_network(task, dropout=0.3, model="gat-sep").to(device)
    return Training(
        network, task, CONFIG, seed=seed, checkpoint=checkpoint, eval_every=eval_every
    )


def evaluated(result):
    return [step + 1 for step, v in enumerate(result.val_scores) if not math.isnan(v)]


def test_every_step_is_evaluated_unless_told_otherwise():
    assert (start("cpu", None).every, start("cpu", 7).every) == (1, 7)


def test_scores_are_those_of_a_training_that_evaluates_every_step(device):
    (whole,) = train_together([start(device, None)])
    training = start(device, 4)
    (result,) = train_together([training])
    same = pytest.approx if device.type == "cuda" else list
    assert result.losses == same(whole.losses)
    assert evaluated(result) == DUE
    for now, always in (
        (result.val_scores, whole.val_scores),
        (result.test_scores, whole.test_scores),
    ):
        assert [now[step - 1] for step in DUE] == same([always[s - 1] for s in DUE])
        assert sum(map(math.isnan, now)) == STEPS - len(DUE)
    best = max(DUE, key=lambda step: (result.val_scores[step - 1], -step))
    assert (result.best_step, result.val) == (best, result.val_scores[best - 1])
    assert result.test == result.test_scores[best - 1]
    val, test = scores(
        training.network(training.task.x, training.task.graphs), training.task
    )
    assert (val.item(), test.item()) == pytest.approx((result.val, result.test))
    recorded = device.type == "cuda"
    assert len(training._program._graphs) == (2 if recorded else 0)


@pytest.mark.parametrize("after", [3, 4, 9])
def test_resumed_equals_uninterrupted(after, tmp_path):
    path = tmp_path / "state"
    expected, whole = start("cpu", 4), None
    (whole,) = train_together([expected])
    first = start("cpu", 4, path)
    for _ in range(after):
        first.step()
    first.save_if_due(float("inf"))
    second = start("cpu", 4, path)
    assert second.state.done == after
    (resumed,) = train_together([second])
    assert str(replace(resumed, seconds=0)) == str(replace(whole, seconds=0))
    pairs = zip(
        second.network.state_dict().values(),
        expected.network.state_dict().values(),
        strict=True,
    )
    assert all(torch.equal(mine, theirs) for mine, theirs in pairs)


def test_checkpoint_of_another_schedule_is_not_used(tmp_path):
    path = tmp_path / "state"
    first = start("cpu", 4, path)
    first.step()
    first.save_if_due(float("inf"))
    for other in (None, 5):
        with pytest.warns(UserWarning, match="belongs to another training"):
            assert start("cpu", other, path).state.done == 0


def test_trained_together_each_has_its_own_schedule():
    results = train_together([start("cpu", every) for every in (4, None, 20)])
    assert [evaluated(result) for result in results] == [
        DUE,
        [*range(1, STEPS + 1)],
        [STEPS],
    ]
    assert results[0].losses == results[1].losses == results[2].losses


def test_a_step_without_evaluation_never_waits():
    training = start("cpu", 4)
    state = start_state(training.network)
    run_step(training.network, training.task, state, False)
    with NoWaiting():
        run_step(training.network, training.task, state, False)
    assert state.val_scores[:2].isnan().all()
    assert (state.step, state.best_step) == (2, 0)


# --- Which nodes are seeds when: every one once per epoch, in shares, from the seed ---

NODES = torch.arange(100, 123)


def epoch_of(plan, epoch):
    first = epoch * plan.batches_per_epoch
    return [plan.seeds(first + place) for place in range(plan.batches_per_epoch)]


@pytest.mark.parametrize(("size", "batches"), [(1, 23), (5, 5), (22, 2), (23, 1)])
def test_every_node_once_per_epoch_in_batches_alike(size, batches):
    plan = BatchPlan(NODES, size, seed=0)
    assert plan.batches_per_epoch == batches
    found = epoch_of(plan, 2)
    assert torch.equal(torch.cat(found).sort().values, NODES)
    sizes = [part.numel() for part in found]
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1


def test_larger_than_all_is_all():
    assert BatchPlan(NODES, 1000, seed=0).batches_per_epoch == 1


def test_order_is_of_seed_and_epoch_and_not_of_what_was_asked_before():
    plan = BatchPlan(NODES, 5, seed=0)
    first = [plan.seeds(step).tolist() for step in range(15)]
    assert [BatchPlan(NODES, 5, seed=0).seeds(s).tolist() for s in (14, 3)] == [
        first[14],
        first[3],
    ]
    assert first[:5] != first[5:10]
    assert BatchPlan(NODES, 5, seed=1).seeds(0).tolist() != first[0]
