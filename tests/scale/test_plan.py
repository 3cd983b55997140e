"""Which nodes are seeds when: every one once per epoch, in shares, from the seed."""

import pytest
import torch

from ecg_gnn.scale.plan import BatchPlan
from ecg_gnn.system.checks import InputError

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


@pytest.mark.parametrize("processes", [2, 3])
def test_shares_of_a_batch_are_the_batch(processes):
    whole = BatchPlan(NODES, 8, seed=0)
    plans = [BatchPlan(NODES, 8, 0, rank, processes) for rank in range(processes)]
    for step in range(6):
        shares = [plan.seeds(step) for plan in plans]
        assert min(share.numel() for share in shares) > 0
        assert torch.equal(torch.cat(shares), whole.seeds(step))


def test_refuses_batches_that_not_all_can_share():
    with pytest.raises(InputError, match=r"'batch_size' must be large .* 4 processes"):
        BatchPlan(NODES, 3, 0, 0, 4)
    with pytest.raises(InputError, match=r"'batch_size' must be in \[1, inf\)"):
        BatchPlan(NODES, 0, 0)
