"""Batches, one step after another, from worker processes if there are any."""

import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ecg_gnn.scale.neighbourhood import GraphFacts, Neighbourhood, NodeInputs
from ecg_gnn.scale.sampler import GraphSampler
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import BatchPlan
from ecg_gnn.train.training_task import moved

_ATTEMPTS = 3
_LOST = "DataLoader worker"


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step learns from."""

    near: Neighbourhood  # the nodes around the seeds
    x: Tensor  # what the network reads of them, [n, F]
    y: Tensor  # the seeds' classes, [s]
    learned: Tensor | None  # how much each seed counts, 0 or 1; None: all, [s]

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        return moved(self, device)


@dataclass(frozen=True, eq=False)
class BatchMaker:
    """Everything that a step's batch is made from; it can go to a worker process."""

    plan: BatchPlan
    sampler: GraphSampler
    inputs: NodeInputs
    graphs: Sequence[GraphFacts]

    def __call__(self, step: int) -> Batch:
        """The batch of a step, the same whoever makes it and whenever."""
        seeds = self.plan.seeds(step)
        near = Neighbourhood.around(seeds, self.sampler.at(step), self.graphs)
        x, learned = self.inputs.for_training(
            near.nodes, seeds.numel(), self.plan.seed, step
        )
        return Batch(near, x, self.inputs.y[seeds], learned)

    def or_refusal(self, step: int) -> Batch | InputError:
        """The same; a refusal is handed over by a worker process, as one line."""
        try:
            return self(step)
        except InputError as error:
            return error


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the handler of SIGCHLD: torch's raises wherever a worker dies."""
    handler = signal.getsignal(signal.SIGCHLD)
    yield
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGCHLD, handler)


class BatchStream:
    """Batches of steps in order; a worker process that is lost is replaced."""

    def __init__(self, make: BatchMaker, steps: int, done: int, workers: int) -> None:
        self._make, self._steps, self._workers = make, steps, workers
        self._next = done
        self._rest: Iterator[Any] | None = None

    def next(self) -> Batch:
        """The next step's batch; an ``InputError`` if its nodes cannot be read."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                batch = next(self._started())
                break
            except (RuntimeError, ConnectionError, EOFError) as error:
                # What a lost worker had sent may be gone with it: then a connection is.
                if isinstance(error, RuntimeError) and _LOST not in str(error):
                    raise
                self.stop()
                self._warn_or_give_up(attempt)
        if isinstance(batch, InputError):
            self.stop()
            raise batch
        self._next += 1
        made: Batch = batch
        return made

    def stop(self) -> None:
        """Let the workers go."""
        self._rest = None

    def _started(self) -> Iterator[Any]:
        if self._rest is None:
            loader: DataLoader[int] = DataLoader(
                range(self._next, self._steps),  # type: ignore[arg-type]
                batch_size=None,  # an item is a step
                num_workers=self._workers,
                collate_fn=self._make.or_refusal,  # type: ignore[arg-type]
            )
            with _own_signals():
                self._rest = iter(loader)
        return self._rest

    def _warn_or_give_up(self, attempt: int) -> None:
        lost = f"a worker process was lost while step {self._next + 1} was prepared"
        if attempt == _ATTEMPTS:
            raise InputError(
                f"{lost}, {attempt} times, most often for its memory: 'workers' must "
                f"be lower (got {self._workers})"
            )
        warnings.warn(f"{lost}: trying again", stacklevel=3)
