"""The machine: memory, threads, and processes that train one network together.

``torchrun`` starts such processes, starts them again when one was lost, and tells each
who it is. Outside of it there is one process, and nothing is waited for.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ecg_gnn.system.checks import InputError, check_in_range

_FALLBACK = 4 << 30  # where the system does not tell
_SHARE, _CUDA_SHARE = 0.5, 0.8  # of what is free; GPUs are rarely shared
# Per number of the embeddings: the grid and how it is made, two float32 operands, and
# float64 rows where clusters are looked at again (on a GPU, halves and few such rows).
_ENTRY_BYTES, _CUDA_ENTRY_BYTES = 32, 16
_LIST_BYTES = 512  # per row: its candidates and its neighbours
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def memory_budget(memory: int | None, device: torch.device) -> int:
    """The bytes that a search may take: as given, else a share of what is free."""
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


@contextmanager
def explaining(sentence: Callable[..., str | None], *arguments: Any) -> Iterator[None]:
    """Say what to lower where memory runs out inside the block; asked only then."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = sentence(*arguments) if out_of_memory(error) else None
        if said is None:
            raise
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        raise (torch.OutOfMemoryError if on_gpu else MemoryError)(said) from error


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; torch says so on a CPU in words only."""
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "can't allocate memory" in str(error)
        or "std::bad_alloc" in str(error)
    )


# The others wait while the first process finds an evolved graph; torchrun, not a
# timeout, notices a process that was lost.
_TIMEOUT = timedelta(days=1)


class World(NamedTuple):
    """This process among all that train together."""

    rank: int  # its number; the first one writes what there is to write
    size: int  # how many there are

    @property
    def is_first(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0


def world() -> World:
    """The processes that are joined; one alone where none are."""
    if dist.is_available() and dist.is_initialized():
        return World(dist.get_rank(), dist.get_world_size())
    return World(0, 1)


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that torchrun started, if it did; each takes its own GPU."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or not dist.is_available():
        yield world()
        return
    if torch.cuda.is_available():
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if local >= torch.cuda.device_count():
            raise InputError(
                f"'nproc-per-node' must be at most {torch.cuda.device_count()}, the "
                f"number of GPUs (got {local + 1} processes or more)"
            )
        torch.cuda.set_device(local)
    meeting = dist.rendezvous("env://", timeout=_TIMEOUT)  # type: ignore[attr-defined]
    store, rank, size = next(meeting)
    # torchrun keeps one store over all restarts (pytorch issue 135712), with entries
    # that name dead processes. Only within one machine do all processes agree on how
    # often they were restarted.
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size):
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"life {restarts}", store)  # type: ignore[attr-defined]
    dist.init_process_group(
        backend(), timeout=_TIMEOUT, world_size=size, rank=rank, store=store
    )
    try:
        yield world()
    finally:
        dist.destroy_process_group()


def backend() -> str:
    """What tensors travel by: those on GPUs by nccl, others by gloo."""
    return "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"


@contextmanager
def first_goes_first() -> Iterator[None]:
    """The first process enters first; the others then find what it cached."""
    one_of = world()
    if not one_of.is_first:
        wait_for_all()
    yield
    if one_of.is_first:
        wait_for_all()


def wait_for_all() -> None:
    """Until every process has come here."""
    if world().size > 1:
        dist.barrier()


def all_have(it: bool) -> bool:
    """Whether all processes have something; if one does not, all must make it."""
    lacking = torch.tensor([float(not it)])
    return not bool(add_up(lacking))


def add_up(tensor: Tensor) -> Tensor:
    """The sum over all processes, in place."""
    if world().size > 1:
        dist.all_reduce(tensor)
    return tensor


def average(tensors: Iterable[Tensor]) -> None:
    """The mean over all processes, in place."""
    size = world().size
    for tensor in tensors if size > 1 else ():
        add_up(tensor).div_(size)


def gather_rows(own: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Everybody's rows in the order of the processes, so many of each."""
    if world().size == 1:
        return [own]
    padded = own.new_zeros(max(sizes), own.size(1))
    padded[: own.size(0)] = own
    gathered = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(gathered, padded)
    return [rows[:size] for rows, size in zip(gathered, sizes, strict=True)]


def agree(what: str, value: int) -> None:
    """Refuse to go on where processes differ in a number."""
    values = list(map(int, gather_rows(torch.tensor([[value]]), [1] * world().size)))
    if len(set(values)) > 1:
        raise InputError(
            f"{what} must be the same for all processes, which must see one output "
            f"folder (got {values})"
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
