"""Peak memory of a piece of work."""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


Result = TypeVar("Result")


def peak_mb(
    work: Callable[[], Result], device: torch.device
) -> tuple[Result, float | None]:
    """What work gives, and how far memory rises above where it was meanwhile.

    In MiB; None where nobody counts.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        result = work()
        return result, (torch.cuda.max_memory_allocated(device) - before) / 2**20
    before_kb = _start_counting()
    if before_kb is None:
        return work(), None
    result = work()
    return result, (_read_kb("VmHWM") - before_kb) / 2**10


def most_held_mb(work: Callable[[], Result]) -> tuple[Result, float | None]:
    """What work gives, and the most memory that the process holds meanwhile.

    In MiB of the host; None where nobody counts.
    """
    counting = _start_counting() is not None
    result = work()
    return result, _read_kb("VmHWM") / 2**10 if counting else None


def _start_counting() -> int | None:
    """Set the kernel's high-water mark to the present, in KiB; None if it has none."""
    _give_back_free_memory()
    try:
        _CLEAR.write_text("5")
        return _read_kb("VmRSS")
    except OSError:
        return None


def _give_back_free_memory() -> None:
    """What an earlier peak left with the allocator must not hide the next one."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _read_kb(key: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise OSError(f"{key} is not in {_STATUS}")
