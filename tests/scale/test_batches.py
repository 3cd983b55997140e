"""Batches: the same from any number of workers, and workers that are lost."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from batch_trainings import SMALL, plain_task, training_of
from ecg_gnn.scale.batches import BatchMaker, BatchStream
from ecg_gnn.system.checks import InputError

# Python 3.12 and later warn of every fork beside threads, which torch has.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def batch_maker(task=None):
    return training_of(task or plain_task(), SMALL)._stream._make


def taken(stream, count):
    return [stream.next() for _ in range(count)]


def same(a, b):
    return (
        torch.equal(a.x, b.x)
        and torch.equal(a.y, b.y)
        and torch.equal(a.near.nodes, b.near.nodes)
        and all(
            torch.equal(p.edge_index, q.edge_index)
            for p, q in zip(a.near.parts, b.near.parts, strict=True)
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
    batch = batch_maker()(0)
    graphs = batch.near.graphs()
    up_to = torch.tensor(batch.near.nodes_per_hop).cumsum(0).tolist()
    for graph in graphs:
        first, second = (graph.at(layer).adjacency for layer in range(2))
        assert (first.num_nodes, first.num_targets) == (up_to[2], up_to[1])
        assert (second.num_nodes, second.num_targets) == (up_to[1], up_to[0])
        assert (first.target < first.num_targets).all()
    drawn = [part.edge_index.size(1) for part in batch.near.parts]
    assert drawn == [graph.at(0).adjacency.num_edges for graph in graphs]


def test_workers_change_nothing():
    make = batch_maker()
    alone = taken(BatchStream(make, 7, 0, workers=0), 7)
    helped = taken(BatchStream(make, 7, 0, workers=2), 7)
    assert all(map(same, alone, helped))
    resumed = BatchStream(make, 7, 5, workers=0).next()
    assert same(resumed, alone[5])


@dataclass(frozen=True, eq=False)
class DeadlyMaker(BatchMaker):
    """Kills its process at one step: the first time, or every time."""

    marker: Path
    always: bool = False

    @classmethod
    def like(cls, make, **options):
        parts = (make.plan, make.sampler, make.inputs, make.graphs)
        return cls(*parts, **options)

    def __call__(self, step):
        if step == 2 and (self.always or not self.marker.exists()):
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(step)


def test_a_lost_worker_is_replaced(tmp_path):
    make = batch_maker()
    deadly = DeadlyMaker.like(make, marker=tmp_path / "dead")
    stream = BatchStream(deadly, 4, 0, workers=1)
    with pytest.warns(UserWarning, match="a worker process was lost while step"):
        found = taken(stream, 4)
    assert all(map(same, found, taken(BatchStream(make, 4, 0, workers=0), 4)))


def test_a_worker_that_is_lost_again_and_again_is_an_error(tmp_path):
    deadly = DeadlyMaker.like(batch_maker(), marker=tmp_path / "dead", always=True)
    stream = BatchStream(deadly, 4, 2, workers=1)
    with (
        pytest.warns(UserWarning, match="trying again"),
        pytest.raises(InputError, match=r"lost while step 3 .* 3 times, .* \(got 1\)"),
    ):
        stream.next()


class RefusingInputs:
    """Features that cannot be read."""

    y = torch.zeros(40, dtype=torch.long)

    def for_training(self, *_):
        raise InputError("x.npy: must have 1088 bytes (got 500)")


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_worker_refuses_is_one_line(workers):
    make = replace(batch_maker(), inputs=RefusingInputs())
    with pytest.raises(InputError) as refused:
        BatchStream(make, 4, 0, workers).next()
    assert str(refused.value) == "x.npy: must have 1088 bytes (got 500)"


def test_other_errors_are_not_hidden():
    make = replace(batch_maker(), graphs=None)
    with pytest.raises(TypeError):
        BatchStream(make, 4, 0, workers=0).next()
