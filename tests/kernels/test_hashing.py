"""Seeds of steps: fresh in each, the same when a training goes on, never twice."""

import pytest
import torch

from ecg_gnn.kernels import Adjacency, StepSeeds, dropout, hashing, keep_mask
from ecg_gnn.kernels.hashing import fresh_seed, hashes
from ecg_gnn.system.seeds import derive_seed

CPU = torch.device("cpu")


def drawn(seeds, device, count=5):
    """The first seeds of the next step."""
    with seeds.step():
        return [int(fresh_seed(device)) for _ in range(count)]


def all_of(seeds, steps):
    """Every seed that so many steps could hand out."""
    found = []
    for _ in range(steps):
        with seeds.step():
            found.append(seeds._seeds.clone())
    return torch.cat(found)


def test_every_step_has_fresh_seeds(device):
    seeds = StepSeeds(3, device)
    found = [seed for _ in range(20) for seed in drawn(seeds, device)]
    assert len(set(found)) == 20 * 5


def test_seeds_lie_on_the_device_one_by_one(device):
    with StepSeeds(3, device).step():
        seed = fresh_seed(device)
    assert (seed.shape, seed.dtype) == ((1,), torch.int64)
    assert seed.device.type == device.type


@pytest.mark.parametrize("done", [0, 1, 7])
def test_resumed_draws_what_it_would_have_drawn(done, device):
    whole = StepSeeds(5, device)
    expected = [drawn(whole, device) for _ in range(done + 3)]
    resumed = StepSeeds(5, device, step=done)
    assert [drawn(resumed, device) for _ in range(3)] == expected[done:]


def test_how_many_a_step_takes_does_not_matter():
    """A step that draws more must not shift those after it."""
    few, many = StepSeeds(5, CPU), StepSeeds(5, CPU)
    drawn(few, CPU, 1)
    drawn(many, CPU, 50)
    assert drawn(few, CPU) == drawn(many, CPU)


def test_no_seed_comes_twice():
    bases = [derive_seed(seed, "training") for seed in (0, 1, 2)]
    found = torch.cat([all_of(StepSeeds(base, CPU), 50) for base in bases])
    assert found.numel() == 3 * 50 * 4096
    assert found.unique().numel() == found.numel()


def test_no_repeats_far_into_a_training():
    near, far = (all_of(StepSeeds(7, CPU, step=first), 10) for first in (0, 10**6))
    both = torch.cat([near, far])
    assert both.unique().numel() == both.numel()


def test_another_seed_is_another_sequence():
    assert not {*drawn(StepSeeds(0, CPU), CPU)} & {*drawn(StepSeeds(1, CPU), CPU)}


def test_largest_seed():
    assert len({*drawn(StepSeeds(2**63 - 1, CPU), CPU)}) == 5


def test_seeds_keep_their_place():
    """A recorded step reads this very memory again."""
    seeds, found = StepSeeds(3, CPU), []
    for _ in range(3):
        with seeds.step():
            found.append(fresh_seed(CPU))
    assert len({seed.data_ptr() for seed in found}) == 1
    assert found[0] == found[2]  # the third step wrote over the first one's


def test_more_draws_than_seeds_are_refused(monkeypatch):
    monkeypatch.setattr(hashing, "_PER_STEP", 4)
    seeds = StepSeeds(3, CPU)
    assert len({*drawn(seeds, CPU, 4)}) == 4
    with pytest.raises(AssertionError, match="more random draws in a step than seeds"):
        drawn(seeds, CPU, 5)


def test_outside_a_step_torch_decides(device):
    torch.manual_seed(2)
    first, second = (fresh_seed(device) for _ in range(2))
    torch.manual_seed(2)
    assert torch.equal(fresh_seed(device), first)
    assert not torch.equal(first, second)


def test_a_step_leaves_nothing_behind():
    def failing():
        with StepSeeds(3, CPU).step():
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        failing()
    torch.manual_seed(2)
    expected = fresh_seed(CPU)
    torch.manual_seed(2)
    drawn(StepSeeds(3, CPU), CPU)
    assert torch.equal(fresh_seed(CPU), expected)  # nor is torch's generator read


def test_masks_of_neighbouring_seeds_are_independent():
    """Seeds are steps of one size apart: their hashes must not show it."""
    seeds = StepSeeds(11, CPU)
    masks = []
    for _ in range(4):
        with seeds.step():
            masks += [hashes(4000, fresh_seed(CPU)) >= 2**31 for _ in range(5)]
    signs = 2.0 * torch.stack(masks).double() - 1
    agreement = signs @ signs.t() / 4000 - torch.eye(20)
    assert agreement.abs().max() < 5 / 4000**0.5
    # Nor is one the other, moved by some places.
    for shift in (1, 2, 3, 64, 1000):
        moved = signs[:, shift:] @ signs[:, :-shift].t() / (4000 - shift)
        assert moved.abs().max() < 5.5 / (4000 - shift) ** 0.5


def test_hashes_are_uniform():
    found = hashes(200_000, torch.tensor([42]))
    assert int(found.min()) >= 0
    assert int(found.max()) < 2**32
    share = (found >> 28).bincount(minlength=16) / 200_000
    assert (share - 1 / 16).abs().max() < 5 * (1 / 16 / 200_000) ** 0.5


def test_dropout_and_drop_edge_read_the_step(device):
    """On a GPU everything random comes from the step, and all of it is fresh."""
    if device.type == "cpu":
        pytest.skip("on a CPU torch's generator is seeded for every step")
    edges = torch.randint(50, (2, 400), generator=torch.Generator().manual_seed(0))
    graph = Adjacency.from_edge_index(edges, 50).to(device)
    ones = torch.ones(50, 8, device=device)

    def step(seeds):
        with seeds.step():
            masks = (
                dropout(ones, 0.5),
                dropout(ones, 0.5),
                graph.drop_edges(0.5).kept[:, None],
                keep_mask(400, 0.5, device)[:, None],
            )
        return [tuple(mask.flatten().tolist()) for mask in masks]

    seeds, again = StepSeeds(1, device), StepSeeds(1, device)
    first, second = step(seeds), step(seeds)
    assert len({*first, *second}) == 8
    torch.manual_seed(77)  # not read
    assert [step(again), step(again)] == [first, second]
