"""How much memory a search may take."""

import os
from pathlib import Path

import torch

from ecg_gnn.system.checks import check_in_range

_FALLBACK = 4 << 30  # where the system does not tell
_SHARE, _CUDA_SHARE = 0.5, 0.8  # of what is free
# Per number of the embeddings: the grid and how it is made, two float32 operands, and
# float64 rows where clusters are looked at again (on a GPU, halves and few such rows).
_ENTRY_BYTES, _CUDA_ENTRY_BYTES = 32, 16
_LIST_BYTES = 512  # per row: its candidates and its neighbours
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def memory_budget(memory: int | None, device: torch.device) -> int:
    """The bytes that a search may take: as given, else half of what is free.

    On a GPU, which is rarely shared, four fifths.
    """
    if memory is None:
        share = _CUDA_SHARE if device.type == "cuda" else _SHARE
        return int(share * available_bytes(device))
    check_in_range("memory", memory, 1, None)
    return memory


def fits_in_memory(num_nodes: int, dim: int, budget: int, *, on_gpu: bool) -> bool:
    """Whether a search may hold all rows at once."""
    entry = _CUDA_ENTRY_BYTES if on_gpu else _ENTRY_BYTES
    return num_nodes * (entry * dim + _LIST_BYTES) <= budget


def available_bytes(device: torch.device) -> int:
    """Free memory of a device."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        reserved = torch.cuda.memory_reserved(device)
        return free + reserved - torch.cuda.memory_allocated(device)
    return min(_free_in_machine(), *(_free_in_cgroup(*names) for names in _CGROUPS))


def _free_in_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) << 10
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return _FALLBACK


def _free_in_cgroup(limit: str, used: str) -> int:
    """What a container still has; more than any machine where it has no limit."""
    root = Path("/sys/fs/cgroup")
    try:
        return max(0, int((root / limit).read_text()) - int((root / used).read_text()))
    except (OSError, ValueError):  # there is none, or it says "max"
        return 1 << 62


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; torch says so on a CPU in words only."""
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "can't allocate memory" in str(error)
        or "std::bad_alloc" in str(error)
    )
