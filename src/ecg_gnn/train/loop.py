"""The benchmark's protocol: AdamW steps with evaluations, by default after each step.

The reported test score is the one at the step of the best validation score. Nothing
inside a step waits for the device: losses and scores are written into buffers that are
read once at the end, and the best weights are kept by a selection on the device.

All randomness of step t comes from (seed, t), so that a run resumed from a checkpoint
draws what the uninterrupted one would have drawn.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch

from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train.training import Training
from ecg_gnn.train.training_task import TrainResult

PRECISIONS = ("fp32", "tf32", "bf16")  # which arithmetic matrix products use

Progress = Callable[[int, int, float], None]
"""Called about once a second with (steps done, steps in all, best validation score)."""


def train_together(
    trainings: Sequence[Training], *, progress: Progress | None = None
) -> list[TrainResult]:
    """Train several networks step by step in turns, on one device and in one precision.

    Each ends with the weights of its best validation step.
    On a GPU each has a queue of its own, so that small steps of several trainings run
    at the same time; the numbers are those of training one after another. Seconds are
    each training's share; progress is of all steps together.
    """
    ((device, precision),) = {(t.device, t.config.precision) for t in trainings}
    total = sum(training.config.steps for training in trainings)
    last = last_report = time.perf_counter()
    # Steps seed themselves; the block only puts torch's generator back afterwards.
    with seeded(0, "training"), computing_in(precision, device):
        while waiting := [training for training in trainings if not training.done]:
            for training in waiting:
                training.step()
            now = time.perf_counter()
            for training in waiting:
                training.state.seconds += (now - last) / len(waiting)
                training.save_if_due(now)
            last = now
            if progress is not None and now - last_report > 1:
                last_report = now
                done = sum(training.state.done for training in trainings)
                best = max(training.best_so_far() for training in trainings)
                progress(done, total, best)
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # steps may still be queued
        now = time.perf_counter()
        for training in trainings:
            training.state.seconds += (now - last) / len(trainings)
    return [training.finish() for training in trainings]


def default_precision(device: torch.device) -> Literal["fp32", "tf32"]:
    """TF32 on GPUs, where plain fp32 leaves the tensor cores idle; else fp32."""
    return "tf32" if device.type == "cuda" else "fp32"


@contextmanager
def computing_in(precision: str, device: torch.device) -> Iterator[None]:
    """Use a precision inside the block, and put torch's setting back afterwards.

    ``bf16`` is autocast: weights, optimizer, norms and softmax stay in float32.
    """
    check_choice("precision", precision, PRECISIONS)
    if precision == "tf32" and device.type != "cuda":
        raise InputError(
            "'precision' must be one of ['fp32', 'bf16'] "
            f"on {device.type!r} (got 'tf32')"
        )
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        # Uncached: the block spans many steps, and the cache of cast weights lives as
        # long as the block, so every step would compute with the first step's weights.
        with torch.autocast(
            device.type,
            torch.bfloat16,
            enabled=precision == "bf16",
            cache_enabled=False,
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
