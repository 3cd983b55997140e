"""Nothing inside a training step waits for the device."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ecg_gnn.train.state import TrainState
from ecg_gnn.train.training import run_step
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


class NoWaiting(TorchDispatchMode):
    """Refuses every operation whose result a GPU would have to send to the host."""

    waits = frozenset({"_local_scalar_dense", "nonzero", "equal", "masked_select"})

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        assert name not in self.waits, f"{name} waits for the device"
        if name.startswith("index"):
            chosen = args[1] if isinstance(args[1], list | tuple) else []
            for index in chosen:
                by_mask = index is not None and index.dtype == torch.bool
                assert not by_mask, f"{name} by a mask waits for the device"
        return func(*args, **kwargs or {})


def start(network):
    """The state with the fused optimizer, as on a GPU: the other one waits on CPU."""
    state = TrainState.start(network, 1e-3, 0.0, 5)
    state.optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    return state


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
    state = TrainState.start(network, 1e-3, 0.0, 5)
    run_step(network, task, state)
    torch.cuda.set_sync_debug_mode("error")
    try:
        run_step(network, task, state)
    finally:
        torch.cuda.set_sync_debug_mode("default")
