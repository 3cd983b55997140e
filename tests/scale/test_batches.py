"""Batches: the same from any number of workers, and workers that are lost."""

import multiprocessing
import os
import signal
from dataclasses import replace

import pytest
import torch

from batch_trainings import SMALL, plain_task, training_of
from ecg_gnn.scale.batches import BatchMaker, NodeInputs
from ecg_gnn.system.checks import InputError

# Python 3.12 and later warn of every fork beside threads, which torch has.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def batch_maker(task=None):
    training = training_of(task or plain_task(), SMALL)
    return BatchMaker(training._plan, training._sampler, NodeInputs(training.task))


def same(a, b):
    return (
        torch.equal(a.x, b.x)
        and torch.equal(a.y, b.y)
        and torch.equal(a.near.nodes, b.near.nodes)
        and all(
            torch.equal(*edges)
            for edges in zip(a.near.edges, b.near.edges, strict=True)
        )
    )


def test_what_a_batch_holds():
    task = plain_task()
    batch = batch_maker(task)(4)
    seeds = batch.near.nodes[: batch.y.numel()]
    assert batch.near.nodes_per_hop[0] == seeds.numel() <= SMALL.size
    assert set(seeds.tolist()) <= set(task.train_index.tolist())
    assert torch.equal(batch.y, task.y[seeds])
    assert torch.equal(batch.x, task.x[batch.near.nodes])


def test_layers_need_ever_fewer_nodes():
    make = batch_maker()
    batch = make(0)
    graphs = make.sampler.inputs_from(batch.near, torch.device("cpu"))
    up_to = torch.tensor(batch.near.nodes_per_hop).cumsum(0).tolist()
    for graph in graphs:
        first, second = (graph.at(layer).adjacency for layer in range(2))
        assert (first.num_nodes, first.num_targets) == (up_to[2], up_to[1])
        assert (second.num_nodes, second.num_targets) == (up_to[1], up_to[0])
        assert (first.target < first.num_targets).all()
    drawn = [edges.size(1) for edges in batch.near.edges]
    assert drawn == [graph.at(0).adjacency.num_edges for graph in graphs]


def test_workers_change_nothing():
    make = batch_maker()
    alone = list(make.in_order(range(7), workers=0))
    helped = list(make.in_order(range(7), workers=2))
    assert len(alone) == len(helped) == 7
    assert all(map(same, alone, helped))
    resumed = next(make.in_order(range(5, 7), workers=0))
    assert same(resumed, alone[5])


class DeadlyMaker(BatchMaker):
    """Kills its process at one step."""

    def __call__(self, step):
        if step == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(step)


def test_a_lost_worker_is_one_line():
    make = batch_maker()
    deadly = DeadlyMaker(make.plan, make.sampler, make.inputs)
    batches = deadly.in_order(range(1, 4), workers=1)
    with pytest.raises(InputError, match=r"process was lost, .* 'workers' \(got 1\)"):
        list(batches)


def test_workers_leave_signals_as_they_were_and_end_with_their_batches():
    before = signal.getsignal(signal.SIGCHLD)
    batches = batch_maker().in_order(range(1, 4), workers=1)
    next(batches)
    assert signal.getsignal(signal.SIGCHLD) == before
    assert multiprocessing.active_children()
    batches.close()
    assert not multiprocessing.active_children()


def test_other_errors_are_not_hidden():
    make = replace(batch_maker(), sampler=None)
    with pytest.raises(AttributeError):
        next(make.in_order(range(4), workers=0))
