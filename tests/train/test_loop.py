"""The training protocol: selection on validation, determinism, no waiting."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from ecg_gnn.system.checks import InputError
from ecg_gnn.train import LoopSettings, Task, loop
from ecg_gnn.train.state import TrainState
from ecg_gnn.train.training import scores
from toy_graphs import make_network, make_task, train

CONFIG = LoopSettings(steps=25, lr=1e-2)

CASES = {
    "benchmark": {"backbone": "benchmark", "model": "gcn"},
    "attention": {"backbone": "benchmark", "model": "gt-sep"},
    "tuned": {"backbone": "tuned", "model": "sage"},
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[2, 3])
def task(request):
    return make_task(request.param, evolved=True, drop_edge=0.5)


def run(task, case=CASES["benchmark"], config=CONFIG, *, seed=0, **options):
    network = make_network(task, **case)
    return network, train(network, task, config, seed=seed, **options)


def weights(network):
    return {key: value.clone() for key, value in network.state_dict().items()}


def same_weights(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def same_numbers(a, b):
    return replace(a, seconds=0) == replace(b, seconds=0)


# --- Selection ------------------------------------------------------------------------


def test_test_score_is_that_of_the_best_validation_step(task, case):
    _, result = run(task, case)
    assert len(result.losses) == len(result.val_scores) == CONFIG.steps
    best = max(result.val_scores)
    assert result.best_step == 1 + result.val_scores.index(best)  # the first of equals
    assert result.val == best
    assert result.test == result.test_scores[result.best_step - 1]
    assert result.seconds > 0


def test_first_of_equal_scores_wins():
    # Ten validation nodes: their accuracy repeats itself long before the end.
    _, result = run(make_task(3), config=LoopSettings(steps=60, lr=1e-2))
    best = [step for step, val in enumerate(result.val_scores) if val == result.val]
    assert len(best) > 1
    assert result.best_step == 1 + best[0]


def test_network_ends_with_the_best_weights(task, case):
    network, result = run(task, case)
    assert not network.training
    val, test = scores(network.eval()(task.x, task.graphs), task)
    assert val.item() == result.val
    assert test.item() == result.test


def test_best_weights_are_those_of_a_shorter_training():
    task = make_task(3)
    _, result = run(task)
    assert result.best_step < CONFIG.steps
    network, _ = run(task)
    shorter = replace(CONFIG, steps=result.best_step)
    early, early_result = run(task, config=shorter)
    assert early_result.best_step == result.best_step
    assert early_result.losses == result.losses[: result.best_step]
    assert same_weights(weights(network), weights(early))


def scripted(scores):
    """What the state keeps when steps give these validation scores."""
    network = torch.nn.Linear(1, 1)
    state = TrainState(network, 1e-3, 0.0, len(scores))
    for step, score in enumerate(scores, start=1):
        network.weight.data.fill_(step)
        val = torch.tensor(score, dtype=torch.float64)
        state.record(torch.tensor(0.5), (val, val / 2))
    return network, state


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.1, 0.3, 0.2], 2),
        ([0.3, 0.3, 0.3], 1),
        ([0.1, 0.4, 0.2, 0.4], 2),
        ([math.nan, 0.2, math.nan], 2),
        ([0.2, math.nan], 1),
        ([0.0, 0.0], 1),
    ],
)
def test_state_keeps_the_first_best_step(scores, best):
    network, state = scripted(scores)
    assert state.best_step.item() == best
    assert state.best_val.item() == scores[best - 1]
    assert state.test_scores[best - 1].item() == scores[best - 1] / 2
    assert state.best_weights.named["weight"].item() == best
    network.load_state_dict(state.best_weights.named)
    assert network.weight.item() == best


def test_no_number_is_no_best_step():
    _, state = scripted([math.nan, math.nan])
    assert state.best_step.item() == 0


# --- No leakage -----------------------------------------------------------------------


def test_test_labels_change_no_selection_and_no_prediction(task):
    other = replace(task, y=task.y.clone())
    num_classes = int(task.y.max()) + 1
    other.y[task.test_index] = (task.y[task.test_index] + 1) % num_classes
    first, a = run(task)
    second, b = run(other)
    assert (a.best_step, a.val, a.losses) == (b.best_step, b.val, b.losses)
    assert a.val_scores == b.val_scores
    assert a.test_scores != b.test_scores
    assert same_weights(weights(first), weights(second))


def test_validation_labels_train_nothing(task):
    other = replace(task, y=task.y.clone())
    other.y[task.val_index] = task.y[task.val_index].roll(1)
    assert run(task)[1].losses == run(other)[1].losses


def test_hidden_test(task):
    hidden = replace(task, test_index=None)
    _, shown = run(task)
    _, result = run(hidden)
    assert result.test is None
    assert result.test_scores is None
    assert (result.losses, result.val_scores) == (shown.losses, shown.val_scores)


# --- Seeds ----------------------------------------------------------------------------


def test_two_runs_are_equal_to_the_bit(task, case):
    first, a = run(task, case)
    second, b = run(task, case)
    assert same_numbers(a, b)
    assert same_weights(weights(first), weights(second))


def test_another_seed_draws_something_else(task):
    assert run(task, seed=0)[1].losses != run(task, seed=1)[1].losses


def test_seed_does_nothing_without_randomness():
    task = make_task(3)
    first = make_network(task, dropout=0.0)
    second = make_network(task, dropout=0.0)
    a = train(first, task, CONFIG, seed=0)
    b = train(second, task, CONFIG, seed=1)
    assert same_numbers(a, b)


def test_global_random_state_is_left_alone(task):
    network = make_network(task)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a = train(network, task, CONFIG, seed=0)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)  # and it is not read either
    assert same_numbers(a, run(task)[1])


def test_inputs_are_left_alone(task):
    before = [t.clone() for t in (task.x, task.y, task.train_index)]
    run(task)
    after = (task.x, task.y, task.train_index)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


# --- Learning -------------------------------------------------------------------------


def test_loss_falls(task, case):
    _, result = run(task, case, LoopSettings(steps=60, lr=1e-2))
    assert sum(result.losses[-10:]) < 0.8 * sum(result.losses[:10])


def test_first_loss_and_step_are_adamw_by_hand():
    task = make_task(3)
    network = make_network(task, dropout=0.0)
    twin = make_network(task, dropout=0.0)
    config = LoopSettings(steps=1, lr=1e-3, weight_decay=0.1)
    result = train(network, task, config, seed=0)
    logits = twin(task.x, task.graphs)[task.train_index]
    loss = torch.nn.functional.cross_entropy(logits, task.y[task.train_index])
    loss.backward()
    assert result.losses[0] == pytest.approx(loss.item(), abs=1e-6)
    for trained, start in zip(network.parameters(), twin.parameters(), strict=True):
        # The first step of Adam: each moment is its gradient, bias-corrected.
        change = start.grad / (start.grad.abs() + 1e-8)
        expected = start * (1 - 1e-3 * 0.1) - 1e-3 * change
        torch.testing.assert_close(trained, expected, atol=1e-6, rtol=0)


def test_some_weights_are_not_decayed():
    """GPR-GNN's hop weights: the first step moves them as it does without decay."""
    task = make_task(3, self_loops=True)
    found = {}
    for decay in (0.0, 0.5):
        network = make_network(task, model="gpr-gnn", dropout=0.0)
        start = {name: p.detach().clone() for name, p in network.named_parameters()}
        train(network, task, LoopSettings(steps=1, lr=1e-2, weight_decay=decay), seed=0)
        found[decay] = dict(network.named_parameters())
    for name, plain in found[0.0].items():
        shrunk = 0.0 if name == "hop_weights" else 1e-2 * 0.5
        expected = plain - shrunk * start[name]
        torch.testing.assert_close(found[0.5][name], expected, atol=1e-6, rtol=0)
    assert "hop_weights" in start


def test_diverging_learning_rate_is_one_sentence(task):
    with pytest.raises(InputError, match="'lr' must be small enough for training"):
        run(task, config=LoopSettings(steps=3, lr=1e30))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, r"'steps' must be in \[1, inf\) \(got 0\)"),
        ({"lr": -1.0}, r"'lr' must be in \[0, inf\) \(got -1.0\)"),
        ({"lr": math.inf}, r"'lr' must be in \[0, inf\) \(got inf\)"),
        ({"lr": math.nan}, r"'lr' must be in \[0, inf\) \(got nan\)"),
        ({"weight_decay": -1.0}, r"'weight_decay' must be in \[0, inf\)"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(InputError, match=message):
        LoopSettings(**settings)


# --- Progress and precision -----------------------------------------------------------


def test_progress_is_called_about_once_a_second(task, monkeypatch):
    ticks = iter(i * 0.4 for i in range(10_000))
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(loop, "time", clock)
    calls = []
    _, result = run(task, progress=lambda *report: calls.append(report))
    assert [step for step, _, _ in calls] == list(range(3, CONFIG.steps + 1, 3))
    for step, steps, best in calls:
        assert steps == CONFIG.steps
        assert best == max(result.val_scores[:step])
    # One tick more: the device's queue is waited for at the end.
    assert result.seconds == pytest.approx(0.4 * (CONFIG.steps + 1))


def test_progress_changes_nothing(task, monkeypatch):
    _, silent = run(task)
    ticks = iter(range(0, 100_000, 10))
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    _, shown = run(task, progress=lambda *_: torch.rand(3))
    assert same_numbers(silent, shown)


def test_bf16_lands_near_fp32(task, case):
    config = LoopSettings(steps=5, lr=1e-3)
    network, single = run(task, case, config)
    _, half = run(task, case, replace(config, precision="bf16"))
    assert half.losses != single.losses
    assert half.losses == pytest.approx(single.losses, abs=0.01)
    assert all(w.dtype != torch.bfloat16 for w in network.state_dict().values())


def test_tf32_needs_a_gpu(task):
    if task.x.is_cuda:
        pytest.skip("this is the message of a CPU")
    with pytest.raises(InputError, match=r"'precision' must be one of .* on 'cpu'"):
        run(task, config=LoopSettings(steps=1, precision="tf32"))
    assert torch.get_float32_matmul_precision() == "highest"


def test_gpu_lands_near_cpu(case, device):
    task = make_task(3, evolved=True)
    network, twin = (make_network(task, dropout=0.0, **case) for _ in range(2))
    config = LoopSettings(steps=5, lr=1e-3)
    expected = train(twin, task, config, seed=0)
    result = train(network.to(device), task.to(device), config, seed=0)
    assert isinstance(task.to(device), Task)
    assert result.losses == pytest.approx(expected.losses, abs=1e-4)
