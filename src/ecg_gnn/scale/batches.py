"""Batches: nodes around seeds, what is read of them, and processes that make them."""

import signal
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ecg_gnn.scale.sampler import GraphSampler, Neighbourhood, uniform
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import BatchPlan, Task


class NodeInputs:
    """Rows of the features, and labels where they are input."""

    def __init__(self, task: Task) -> None:
        self._x, self._labels = task.x, task.labels
        self._trains = torch.zeros(task.x.size(0), dtype=torch.bool)
        self._trains[task.train_index] = True
        self.y = task.y

    def for_training(
        self, nodes: Tensor, num_seeds: int, seed: int, step: int
    ) -> tuple[Tensor, Tensor | None]:
        """The rows, and how much each seed counts: one that gives its label does not.

        Whether a node gives its label is decided by (seed, step, node) alone.
        """
        if self._labels is None:
            return self._x[nodes], None
        drawn = uniform(nodes.numpy(), derive_seed(seed, "labels", step))
        gives = torch.from_numpy(drawn < self._labels.rate) & self._trains[nodes]
        learned = (~gives[:num_seeds]).to(torch.float32)
        return self._with_labels(nodes, gives), learned

    def for_evaluation(self, nodes: Tensor) -> Tensor:
        """The rows; every training node gives its label, if any does."""
        if self._labels is None:
            return self._x[nodes]
        return self._with_labels(nodes, self._trains[nodes])

    def _with_labels(self, nodes: Tensor, gives: Tensor) -> Tensor:
        assert self._labels is not None
        classes = torch.arange(self._labels.num_classes)
        shown = (self.y[nodes, None] == classes) & gives[:, None]
        rows = self._x[nodes]
        return torch.cat([rows, shown.to(rows.dtype)], dim=1)


class Batch(NamedTuple):
    """What one step learns from."""

    near: Neighbourhood  # the nodes around the seeds
    x: Tensor  # what the network reads of them, [n, F]
    y: Tensor  # the seeds' classes, [s]
    learned: Tensor | None  # how much each seed counts, 0 or 1; None: all, [s]


@dataclass(frozen=True, eq=False)
class BatchMaker:
    """Everything that a step's batch is made from; it can go to a worker process."""

    plan: BatchPlan
    sampler: GraphSampler
    inputs: NodeInputs

    def __call__(self, step: int) -> Batch:
        """The batch of a step, the same whoever makes it and whenever."""
        seeds = self.plan.seeds(step)
        near = self.sampler.around(seeds, step)
        x, learned = self.inputs.for_training(
            near.nodes, seeds.numel(), self.plan.seed, step
        )
        return Batch(near, x, self.inputs.y[seeds], learned)

    def in_order(self, steps: range, workers: int) -> Generator[Batch]:
        """Batches of steps, made ahead by so many processes.

        Raises:
            InputError: A worker process was lost.
        """
        loader: DataLoader[int] = DataLoader(
            steps,  # type: ignore[arg-type]
            batch_size=None,  # an item is a step
            num_workers=workers,
            collate_fn=self,  # type: ignore[arg-type]
            generator=torch.Generator(),  # else it draws from that of dropout
        )
        handler = signal.getsignal(signal.SIGCHLD)
        batches = iter(loader)
        # torch's own handler would raise wherever a worker dies.
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and handler is not None:  # the usual one is 0
            signal.signal(signal.SIGCHLD, handler)
        try:
            yield from batches
        except (RuntimeError, ConnectionError, EOFError) as error:
            # What a lost worker had sent may be gone with it: then a connection is.
            if isinstance(error, RuntimeError) and "DataLoader worker" not in str(
                error
            ):
                raise
            raise InputError(
                "a worker process was lost, usually because memory ran out: use "
                f"fewer 'workers' (got {workers})"
            ) from None
