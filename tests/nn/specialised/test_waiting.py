"""Nothing inside a step waits for the device, and steps can be recorded."""

import pytest

from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import SPECIALISED
from ecg_gnn.train import LoopSettings
from ecg_gnn.train.loop import train_together
from ecg_gnn.train.training import Training, run_step
from no_waiting import NoWaiting, no_waiting_on_a_gpu, start
from toy_graphs import make_network, make_task

SHORT = {
    "cpgnn": {"pretrain_steps": 2},
    "polynormer": {"warm_up_steps": 2, "heads": 2},
}


@pytest.fixture(params=SPECIALISED)
def model(request):
    return request.param


def task_for(model, num_classes=3):
    kind = SPECIALISED[model]
    return make_task(
        num_classes,
        evolved=kind.several_graphs,
        drop_edge=0.5,
        self_loops=kind.self_loops,
    )


def training_of(model, device, **options):
    task = task_for(model).to(device)
    network = make_network(task, model=model, options=SHORT.get(model, {})).to(device)
    config = LoopSettings(steps=10, lr=1e-3, **options)
    return Training(network, task, config, seed=0)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_a_step_never_waits(model, num_classes):
    task = task_for(model, num_classes)
    network = make_network(task, model=model, options=SHORT.get(model, {}))
    Training(network, task, LoopSettings(steps=1, lr=1e-3), seed=0)  # prepares it
    state = start(network)
    run_step(network, task, state)  # what is made once per graph may wait
    with NoWaiting():
        run_step(network, task, state)
    assert state.step == 2


def test_a_step_on_a_gpu_never_waits(model, device):
    if device.type == "cpu":
        pytest.skip("only a GPU can be waited for")
    training = training_of(model, device)
    training.step()
    with no_waiting_on_a_gpu():
        run_step(training.network, training.task, training.state)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_recorded_steps_land_on_the_reference(model, device, precision):
    if device.type == "cpu":
        pytest.skip("steps are recorded on GPUs only")
    training = training_of(model, device, precision=precision)
    (recorded,) = train_together([training])
    assert training._program._graphs
    with using_engine("reference"):
        (plain,) = train_together([training_of(model, device)])
    close = 1e-4 if precision == "fp32" else 0.1
    assert recorded.losses == pytest.approx(plain.losses, abs=close)
