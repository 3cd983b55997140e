"""The command line in one of torchrun's processes, where one is killed half-way.

In every step the gradient that all processes made together is compared with that of
one process alone on the same batch.
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import torch

from ecg_gnn import cli
from ecg_gnn.scale import BatchTraining
from ecg_gnn.train.training_task import supervised_loss

DEADLY_STEP = 5
folder, rank = Path(sys.argv.pop(1)), int(os.environ["RANK"])
learn, save_if_due = BatchTraining.learn, BatchTraining.save_if_due


def note(line):
    with (folder / f"rank{rank}.txt").open("a") as file:
        file.write(f"{line}\n")


def alone(training):
    """Loss and gradient of one process on the whole batch."""
    make = training._stream._make
    whole = replace(make, plan=replace(make.plan, rank=0, processes=1))
    batch = whole(training.state.done)
    weights = training.state.weights
    logits = weights.call(training.network.train(), batch.x, batch.near.graphs())
    loss = supervised_loss(logits, batch.y)
    (gradient,) = torch.autograd.grad(loss, weights.flat)
    return loss.detach(), gradient


def checked_learn(training, batch):
    note(training.state.done)
    marker = folder / "killed"
    if rank == 1 and training.state.done == DEADLY_STEP and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    loss, gradient = alone(training)
    found = learn(training, batch)
    torch.testing.assert_close(found, loss, atol=1e-6, rtol=0)
    shared = training.state.weights.flat.grad
    torch.testing.assert_close(shared, gradient, atol=1e-6, rtol=0)
    note("equal")
    return found


def save_at_once(training, now):
    training._saved = float("-inf")
    save_if_due(training, now)


if __name__ == "__main__":
    BatchTraining.learn, BatchTraining.save_if_due = checked_learn, save_at_once
    cli.main()
