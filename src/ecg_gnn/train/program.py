"""A step that is run again and again: as it stands, or recorded once and replayed.

Full-graph steps are hundreds of short kernels, which a GPU finishes faster than Python
can ask for them. A step whose shapes never change is recorded as a CUDA graph after its
first run; from then on one call replays all of it.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ecg_gnn.kernels import StepSeeds, current_engine
from ecg_gnn.system.seeds import derive_seed, seed_device

_RUNS_BEFORE_RECORDING = 1  # in it kernels are compiled, workspaces and moments made


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage waits: freeing an older recording may spoil the one being made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
            self._seeds = StepSeeds(self.device_seed(seed), device, done)
            self._stream = torch.cuda.Stream(device)
            self._stream.wait_stream(torch.cuda.current_stream(device))

    @staticmethod
    def device_seed(seed: int) -> int:
        """Not the seed itself: hashes of neighbouring seeds overlap."""
        return derive_seed(seed, "steps")

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
        with _no_collection(), torch.cuda.graph(graph, stream=self._stream):
            self._seeded_step(variant)
        self._graphs[variant] = graph  # only a whole one may ever be replayed
        graph.replay()  # recording computes nothing

    def _seeded_step(self, variant: tuple[bool, ...]) -> None:
        with self._seeds.step():
            self._step(*variant)
