"""Steps run as they stand, or recorded once and replayed: the same numbers."""

import pytest
import torch

from ecg_gnn.kernels import Adjacency, dropout, keep_mask, using_engine
from ecg_gnn.train import LoopSettings, StepProgram, Training, steps, train_together
from ecg_gnn.train.training import scores
from toy_graphs import make_network, make_task, random

CPU = torch.device("cpu")
NEVER = 10**9
CASES = {
    "gcn": {"model": "gcn"},
    "sage": {"model": "sage"},
    "gat-sep": {"model": "gat-sep"},
    "gt-sep": {"model": "gt-sep"},
    "tuned gcn": {"backbone": "tuned", "model": "gcn"},
    "tuned sage": {"backbone": "tuned", "model": "sage"},
    "tuned gat": {"backbone": "tuned", "model": "gat"},
}


@pytest.fixture
def cuda():
    if not torch.cuda.is_available():
        pytest.skip("steps are recorded on GPUs only")
    return torch.device("cuda")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def never_record(monkeypatch):
    def forbid():
        monkeypatch.setattr(steps, "_RUNS_BEFORE_RECORDING", NEVER)

    return forbid


# --- On any device --------------------------------------------------------------------


def masks_of(device, runs, *, seed=3, done=0):
    """What a random step draws each time, and the program."""
    ones = torch.ones(30, 8, device=device)
    dropped = torch.zeros_like(ones)
    kept = torch.zeros(200, dtype=torch.bool, device=device)

    def step():
        dropped.copy_(dropout(ones, 0.5))
        kept.copy_(keep_mask(200, 0.5, device))

    made, found = StepProgram(step, device, seed, done), []
    for _ in range(runs):
        made.run()
        made.wait()
        found.append((tuple(dropped.flatten().tolist()), tuple(kept.tolist())))
    return found, made


def test_every_run_draws_afresh(device):
    found, made = masks_of(device, 12)
    assert len({dropped for dropped, _ in found}) == 12
    assert len({kept for _, kept in found}) == 12
    assert (made._graphs != {}) == (device.type == "cuda")


def test_seed_and_number_decide(device):
    found, _ = masks_of(device, 8)
    torch.manual_seed(1234)
    assert masks_of(device, 8)[0] == found
    assert masks_of(device, 5, done=3)[0] == found[3:]
    assert not {*masks_of(device, 8, seed=4)[0]} & {*found}


def test_runs_of_two_programs_do_not_disturb_each_other(device):
    """Each has its own seeds; here they take turns."""
    counts = [torch.zeros(30, 8, device=device) for _ in range(2)]

    def adding(count):
        ones = torch.ones_like(count)
        return lambda: count.add_(dropout(ones, 0.5))

    programs = [
        StepProgram(adding(count), device, seed) for seed, count in enumerate(counts)
    ]
    for _ in range(7):
        for each in programs:
            each.run()
    for seed, (count, made) in enumerate(zip(counts, programs, strict=True)):
        made.wait()
        single = torch.zeros_like(count)
        one = StepProgram(adding(single), device, seed)
        for _ in range(7):
            one.run()
        one.wait()
        assert torch.equal(count, single)
    assert not torch.equal(*counts)


def start(case, device, checkpoint=None, *, steps=20, seed=0, precision="fp32"):
    task = make_task(3, evolved=True, drop_edge=0.5).to(device)
    network = make_network(task, dropout=0.3, **case).to(device)
    config = LoopSettings(
        steps=steps, lr=1e-3, precision=precision, checkpoint_seconds=0.0
    )
    return Training(network, task, config, seed=seed, checkpoint=checkpoint)


def run(case, device, **options):
    """Losses, best weights, and whether the steps were recorded."""
    training = start(case, device, **options)
    (result,) = train_together([training])
    weights = [t.clone() for t in training.state.weights.named.values()]
    return result.losses, weights, training._program._graphs != {}


@pytest.mark.parametrize("after", [2, 9])  # before a step would be recorded, and after
def test_resumed_equals_uninterrupted(case, device, after, tmp_path):
    expected, weights, _ = run(case, device)
    path = tmp_path / "checkpoint.safetensors"
    first = start(case, device, path)
    for _ in range(after):
        first.step()
    first.save_if_due(float("inf"))
    second = start(case, device, path)
    assert second.state.done == after
    (result,) = train_together([second])
    if device.type == "cpu":
        assert result.losses == expected
        pairs = zip(second.state.weights.named.values(), weights, strict=True)
        assert all(torch.equal(mine, theirs) for mine, theirs in pairs)
    assert result.losses == pytest.approx(expected, abs=1e-5)


# --- On a GPU -------------------------------------------------------------------------


def test_recorded_equals_eager(case, cuda, never_record):
    recorded, _, was_recorded = run(case, cuda)
    never_record()
    eager, _, was_recorded_too = run(case, cuda)
    assert (was_recorded, was_recorded_too) == (True, False)
    assert len({*recorded}) == 20
    assert recorded == pytest.approx(eager, abs=1e-5)


def test_two_recorded_runs_are_equal_to_the_bit(case, cuda):
    first, weights, _ = run(case, cuda)
    second, again, _ = run(case, cuda)
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(weights, again, strict=True))


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_recorded_in_other_precisions(case, precision, cuda, never_record):
    recorded, _, was_recorded = run(case, cuda, precision=precision)
    exact, _, _ = run(case, cuda)
    assert was_recorded
    assert recorded == pytest.approx(exact, abs=0.05)
    never_record()
    eager, _, _ = run(case, cuda, precision=precision)
    assert recorded == pytest.approx(eager, abs=1e-4)


def test_fast_engine_lands_on_the_reference(case, cuda):
    """The same masks, too: only rounding is between them."""
    fast, _, _ = run(case, cuda)
    with using_engine("reference"):
        reference, _, was_recorded = run(case, cuda)
    assert not was_recorded
    assert fast == pytest.approx(reference, abs=1e-4)


def test_replays_read_what_lies_there_now(cuda):
    """A recorded step is a program over places in memory, not over values."""
    x, out = torch.ones(4, device=cuda), torch.zeros(4, device=cuda)
    made = StepProgram(lambda: out.add_(x), cuda, 0)
    for _ in range(6):
        made.run()
    made.wait()
    assert out.tolist() == [6.0] * 4
    assert made._graphs != {}
    x.fill_(10.0)
    torch.cuda.synchronize()
    made.run()
    made.wait()
    assert out.tolist() == [16.0] * 4


def test_nothing_is_recorded_too_early(cuda):
    made = StepProgram(lambda: None, cuda, 0)
    recorded = []
    for _ in range(5):
        made.run()
        recorded.append(made._graphs != {})
    assert recorded == [False, True, True, True, True]


def test_gradients_of_replays_are_those_of_their_own_masks(cuda):
    """Forward and backward draw the same mask, in replays as well."""
    edges = torch.randint(40, (2, 200), generator=torch.Generator().manual_seed(0))
    graph = Adjacency.from_edge_index(edges, 40).to(cuda)
    weight = torch.ones(40, 8, device=cuda, requires_grad=True)
    seen, given = (torch.zeros(40, 8, device=cuda) for _ in range(2))

    def step():
        weight.grad = None
        out = dropout(weight, 0.5)
        out.sum().backward()
        seen.copy_(out.detach())
        given.copy_(weight.grad)
        graph.drop_edges(0.5)

    made, masks = StepProgram(step, cuda, 0), set()
    for _ in range(8):
        made.run()
        made.wait()
        assert torch.equal(seen, given)
        masks.add(tuple(seen.flatten().tolist()))
    assert len(masks) == 8


def test_scores_of_a_recorded_step_are_those_of_its_weights(cuda):
    training = start(CASES["gt-sep"], cuda)
    (result,) = train_together([training])
    val, test = scores(
        training.network.eval()(training.task.x, training.task.graphs), training.task
    )
    assert val.item() == pytest.approx(result.val, abs=1e-6)
    assert test.item() == pytest.approx(result.test, abs=1e-6)


# --- On a CPU -------------------------------------------------------------------------


def test_a_cpu_seeds_torch_for_every_step():
    seeds = []
    made = StepProgram(lambda: seeds.append(torch.initial_seed()), CPU, 5, done=2)
    for _ in range(4):
        made.run()
    assert len({*seeds}) == 4
    again = []
    made = StepProgram(lambda: again.append(torch.initial_seed()), CPU, 5)
    for _ in range(6):
        made.run()
    assert again[2:] == seeds


def test_waiting_for_a_cpu_is_nothing():
    x = random(3)
    made = StepProgram(lambda: x.add_(1), CPU, 0)
    made.run()
    made.wait()
    assert torch.equal(x, random(3) + 1)
