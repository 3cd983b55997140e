"""Steps: which nodes they learn from, which are evaluated, and how they are run.

Full-graph steps are hundreds of short kernels, which a GPU finishes faster than Python
can ask for them. A step whose shapes never change is recorded as a CUDA graph after its
first run; from then on one call replays all of it.
"""

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ecg_gnn.kernels import StepSeeds, current_engine
from ecg_gnn.system.seeds import derive_seed, generator_for, seed_device

_RUNS_BEFORE_RECORDING = 1  # in it kernels are compiled, workspaces and moments made
EVALUATIONS = 20  # in a training by batches, if epochs do not decide otherwise


class StepProgram:
    """Runs a step with fresh randomness each time, from (seed, number of the step).

    The step reads and writes the same tensors each time, and never waits for a device.
    What its arguments change is recorded apart: with an evaluation, or without. A step
    whose shapes change cannot be ``recorded``.
    """

    def __init__(
        self,
        step: Callable[..., None],
        device: torch.device,
        seed: int,
        done: int = 0,
        *,
        recorded: bool = True,
    ) -> None:
        self._step, self._device, self._seed, self._done = step, device, seed, done
        self._runs: Counter[tuple[bool, ...]] = Counter()
        self._graphs: dict[tuple[bool, ...], torch.cuda.CUDAGraph] = {}
        self._on_stream = recorded and device.type == "cuda"
        if self._on_stream:
            # Not the seed itself: hashes of neighbouring seeds overlap.
            self._seeds = StepSeeds(derive_seed(seed, "steps"), device, done)
            self._stream = torch.cuda.Stream(device)
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def run(self, *variant: bool) -> None:
        """One more step, called with these arguments."""
        if not self._on_stream:
            seed_device(self._device, derive_seed(self._seed, "step", self._done))
            self._step(*variant)
        else:
            with torch.cuda.stream(self._stream):
                self._run_on_gpu(variant)
        self._done += 1
        self._runs[variant] += 1

    def wait(self) -> None:
        """Until every step so far has been computed."""
        if self._on_stream:
            self._stream.synchronize()
        elif self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _run_on_gpu(self, variant: tuple[bool, ...]) -> None:
        if variant in self._graphs:
            self._graphs[variant].replay()
            return
        early = self._runs[variant] < _RUNS_BEFORE_RECORDING
        if early or current_engine() != "fast":
            self._seeded_step(variant)
            return
        graph = torch.cuda.CUDAGraph()
        was_enabled = gc.isenabled()
        gc.disable()  # freeing an older recording may spoil the one being made
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self._seeded_step(variant)
        finally:
            if was_enabled:
                gc.enable()
        self._graphs[variant] = graph  # only a whole one may ever be replayed
        graph.replay()  # recording computes nothing

    def _seeded_step(self, variant: tuple[bool, ...]) -> None:
        with self._seeds.step():
            self._step(*variant)


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """Epochs of batches: every training node is a seed once per epoch.

    The batches of an epoch are equal up to one node, and no larger than ``size``; a
    small rest would be a step of much noise. All is a function of (seed, step), so that
    a resumed training sees the same batches.
    """

    nodes: Tensor
    size: int
    seed: int
    _order: dict[int, Tensor] = field(default_factory=dict, repr=False)

    @property
    def batches_per_epoch(self) -> int:
        """Steps until every training node was a seed."""
        return -(-self.nodes.numel() // self.size)

    def seeds(self, step: int) -> Tensor:
        """The seeds of a step, which counts from zero."""
        epoch, place = divmod(step, self.batches_per_epoch)
        count, parts = self.nodes.numel(), self.batches_per_epoch
        if epoch not in self._order:
            self._order.clear()  # one epoch after another: only one order is held
            generator = generator_for(self.seed, "epoch", epoch)
            order = torch.randperm(count, generator=generator)
            self._order[epoch] = self.nodes[order.to(self.nodes.device)]
        part = slice(place * count // parts, (place + 1) * count // parts)
        return self._order[epoch][part]
