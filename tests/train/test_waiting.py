"""Nothing inside a training step waits for the device."""

import pytest
import torch

from ecg_gnn.train.state import TrainState
from ecg_gnn.train.training import run_step
from no_waiting import NoWaiting, no_waiting_on_a_gpu, start
from toy_graphs import make_network, make_task

CASES = {
    "benchmark": {"backbone": "benchmark", "model": "gcn"},
    "attention": {"backbone": "benchmark", "model": "gt-sep"},
    "tuned": {"backbone": "tuned", "model": "gat"},
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[2, 3])
def task(request):
    return make_task(request.param, evolved=True, drop_edge=0.5)


def test_the_watch_sees_waiting():
    for wait in (
        lambda: torch.ones(1).item(),
        lambda: bool(torch.ones(1) > 0),
        lambda: torch.ones(3)[torch.ones(3) > 0],
        lambda: torch.ones(3).nonzero(),
    ):
        with pytest.raises(AssertionError, match="waits for the device"), NoWaiting():
            wait()


def test_a_step_never_waits(task, case):
    network = make_network(task, **case)
    state = start(network)
    run_step(network, task, state)  # what is made once may wait
    with NoWaiting():
        run_step(network, task, state)
    assert state.step == 2


@pytest.mark.parametrize(
    "method", ["item", "tolist", "numpy", "__bool__", "__float__", "__int__", "cpu"]
)
def test_a_step_never_asks_a_tensor_for_its_value(task, case, method, monkeypatch):
    network = make_network(task, **case)
    state = start(network)
    run_step(network, task, state)

    def refuse(*_args, **_kwargs):
        raise AssertionError(f"Tensor.{method} inside a step")

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, method, refuse)
        run_step(network, task, state)
    assert state.step == 2


def test_a_step_on_a_gpu_never_waits(case, device):
    if device.type == "cpu":
        pytest.skip("only a GPU can be waited for")
    task = make_task(3, evolved=True, drop_edge=0.5).to(device)
    network = make_network(task, **case).to(device)
    state = TrainState(network, 1e-3, 0.0, 5)
    run_step(network, task, state)
    with no_waiting_on_a_gpu():
        run_step(network, task, state)
