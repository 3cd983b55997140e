"""Threads: how many compute, and what they wait for one another with.

Random generators and numbers of threads belong to the process. Whoever changes them
holds a lock, so that fits in several threads find what each would find alone.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Literal

import torch

_WORTH_THREADS = 300_000  # nodes plus edges
# A fit holds the first, and perhaps trains in threads of its own: they, in turns, hold
# the second.
_locks = {"fit": RLock(), "generator": RLock()}


@contextmanager
def holding(lock: Literal["fit", "generator"]) -> Iterator[None]:
    """Alone among the threads of this process inside; may be nested."""
    with _locks[lock]:
        yield


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Compute with this many threads inside, NumPy's linear algebra too."""
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)


def threads_for(size: int, worth: int = _WORTH_THREADS) -> int:
    """One for a graph of so few nodes and edges that several would mostly wait."""
    return 1 if size < worth else torch.get_num_threads()


def _after_fork() -> None:
    """Leave the parent's threads behind: none of them is in a forked process.

    Who held a lock will not give it back, and OpenMP would wait for its own for ever.
    """
    _locks.update({name: RLock() for name in _locks})
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_after_fork)
