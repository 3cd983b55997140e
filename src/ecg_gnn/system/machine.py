"""The machine: its memory, its threads, and processes that are forked."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any, Literal, TypeVar

import torch

from ecg_gnn.system.checks import size_text

_T = TypeVar("_T")
_FALLBACK = 4 << 30  # where the system does not tell
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


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


@contextmanager
def explaining(sentence: Callable[..., str | None], *arguments: Any) -> Iterator[None]:
    """Say what to lower where memory runs out inside the block; asked only then."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_new = (
            error.__cause__ is None
        )  # one that a block inside has explained is kept
        said = sentence(*arguments) if is_new and out_of_memory(error) else None
        if said is None:
            raise
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        raise (torch.OutOfMemoryError if on_gpu else MemoryError)(said) from error


def does_not_fit(what: str, device: torch.device, to_lower: str) -> str:
    """One line about something that memory was too small for."""
    free = size_text(available_bytes(device))
    return f"{what} does not fit into the {free} that are left on {device}: {to_lower}"


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; torch says so on a CPU in words only."""
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "can't allocate memory" in str(error)
        or "std::bad_alloc" in str(error)
    )


# --- Threads --------------------------------------------------------------------------

_WORTH_THREADS = 300_000  # nodes plus edges
# Random generators and numbers of threads belong to the process. Whoever changes them
# holds a lock, so that fits in several threads find what each would find alone.
# A fit holds the first, and perhaps trains in threads of its own: they, in turns, hold
# the second.
_locks = {"fit": RLock(), "generator": RLock(), "threads": RLock()}
_asked: list[int] = []  # numbers of threads, by those who compute at this moment
_usual: list[tuple[int, Any]] = []  # what it was before the first of them


@contextmanager
def holding(lock: Literal["fit", "generator", "threads"]) -> Iterator[None]:
    """Alone among the threads of this process inside; may be nested."""
    with _locks[lock]:
        yield


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Compute with this many threads inside, NumPy's linear algebra too.

    Where others do so at the same time, the last to leave puts everything back.
    """
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    def use(count: int) -> None:
        torch.set_num_threads(count)
        threadpool_limits(count)

    with holding("threads"):
        if not _asked:  # limits of None change nothing, and can be restored
            _usual.append((torch.get_num_threads(), threadpool_limits()))
        _asked.append(count)
        use(count)
    try:
        yield
    finally:
        with holding("threads"):
            if count in _asked:  # not in a process forked inside
                _asked.remove(count)
            if _asked:
                use(_asked[-1])
            elif _usual:
                number, limits = _usual.pop()
                torch.set_num_threads(number)
                limits.restore_original_limits()


def threads_for(size: int, worth: int = _WORTH_THREADS) -> int:
    """One for a graph of so few nodes and edges that several would mostly wait."""
    return 1 if size < worth else torch.get_num_threads()


def _before_fork() -> None:
    """Wait for fits in other threads.

    They hold locks of torch, functools and others, which a forked process would have
    too, and nobody in it to give them back.
    """
    for lock in _locks.values():
        lock.acquire()


def _after_fork() -> None:
    for lock in _locks.values():
        lock.release()


def _in_the_child() -> None:
    """Leave the parent's threads behind: OpenMP would wait for its own for ever."""
    _locks.update({name: RLock() for name in _locks})
    _asked.clear()
    _usual.clear()
    torch.set_num_threads(1)


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_the_child
)


class cached_property(functools.cached_property[_T]):  # noqa: N801, as in functools
    """``functools.cached_property`` without its lock.

    Python 3.11 has one lock for the property of all objects. A process that is forked
    while another thread holds it would wait for that thread for ever, and has none.
    """

    def __init__(self, func: Callable[[Any], _T]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
