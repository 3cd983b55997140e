"""Batches, one step after another, from worker processes if there are any."""

import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

from ecg_gnn.scale.batch import Neighbourhood, WholeGraph
from ecg_gnn.scale.inputs import NodeInputs
from ecg_gnn.scale.library import LibrarySampler
from ecg_gnn.scale.plan import BatchPlan
from ecg_gnn.scale.sampler import NODE, GraphSampler
from ecg_gnn.system.checks import InputError

_ATTEMPTS = 3
_LOST = "DataLoader worker"


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step learns from.

    Attributes:
        near: The nodes around the seeds.
        x: What the network reads of them. ``[n, F]``
        y: The seeds' classes. ``[s]``
        learned: How much each seed counts, 0 or 1; None: all of them. ``[s]``
    """

    near: Neighbourhood
    x: Tensor
    y: Tensor
    learned: Tensor | None

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        learned = self.learned
        return replace(
            self,
            near=self.near.to(device),
            x=self.x.to(device),
            y=self.y.to(device),
            learned=None if learned is None else learned.to(device),
        )


@dataclass(frozen=True, eq=False)
class BatchMaker:
    """Everything that a step's batch is made from; it can go to a worker process."""

    plan: BatchPlan
    sampler: GraphSampler | LibrarySampler
    inputs: NodeInputs
    wholes: Sequence[WholeGraph]

    def __call__(self, step: int) -> Batch:
        """The batch of a step, the same whoever makes it and whenever."""
        seeds = self.plan.seeds(step)
        asked = NodeSamplerInput(input_id=None, node=seeds, input_type=NODE)
        found = self.sampler.at(step).sample_from_nodes(asked)
        near = Neighbourhood.of(found, self.wholes)
        x, learned = self.inputs.for_training(
            near.nodes, seeds.numel(), self.plan.seed, step
        )
        return Batch(near, x, self.inputs.y[seeds], learned)


class StepLoader(NodeLoader):  # type: ignore[misc]  # PyG has no usable types here
    """PyG's loader, whose items are steps: each step knows its own seeds.

    Args:
        make: Makes batches.
        steps: Which steps.
        workers: Processes that make batches ahead; 0 makes them when asked for.
    """

    def __init__(self, make: BatchMaker, steps: range, workers: int) -> None:
        self.make = make
        data = HeteroData()
        data[NODE].num_nodes = steps.stop
        super().__init__(
            data,
            make.sampler,
            input_nodes=(NODE, torch.arange(steps.stop)),
            filter_per_worker=True,
            sampler=steps,
            num_workers=workers,
        )

    def collate_fn(self, index: list[int]) -> Batch | InputError:
        """The batch of a step; a refusal is handed over, as one line."""
        try:
            return self.make(index[0])
        except InputError as error:
            return error


@contextmanager
def _own_signals() -> Iterator[None]:
    """Put back who is told of lost processes.

    Torch would raise wherever the program happens to be when a worker dies; the next
    batch asks for the workers anyway.
    """
    told = signal.getsignal(signal.SIGCHLD)
    yield
    if threading.current_thread() is threading.main_thread() and told is not None:
        signal.signal(signal.SIGCHLD, told)


class BatchStream:
    """Batches of steps in order; a worker process that is lost is replaced.

    Args:
        make: Makes batches.
        steps: How many steps there are.
        done: How many of them are done.
        workers: Processes that make batches ahead.
    """

    def __init__(self, make: BatchMaker, steps: int, done: int, workers: int) -> None:
        self._make, self._steps, self._workers = make, steps, workers
        self._next = done
        self._rest: Iterator[Any] | None = None

    def next(self) -> Batch:
        """The next step's batch.

        Raises:
            InputError: If the step's nodes cannot be read.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                batch = next(self._started())
                break
            except (RuntimeError, ConnectionError, EOFError) as error:
                # What a lost worker had sent may be gone with it: then a connection is.
                if isinstance(error, RuntimeError) and _LOST not in str(error):
                    raise
                self.stop()
                self._complain(attempt)
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
            steps = range(self._next, self._steps)
            with _own_signals():
                self._rest = iter(StepLoader(self._make, steps, self._workers))
        return self._rest

    def _complain(self, attempt: int) -> None:
        lost = f"a worker process was lost while step {self._next + 1} was prepared"
        if attempt == _ATTEMPTS:
            raise InputError(
                f"{lost}, {attempt} times, most often for its memory: 'workers' must "
                f"be lower (got {self._workers})"
            )
        warnings.warn(f"{lost}: trying again", stacklevel=3)
