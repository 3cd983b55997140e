"""Processes that train for another one, and end with it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self, TypeVar

import torch

_LOOK_SECONDS = 1.0
_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


class LostWorkerError(MemoryError):
    """A process ended without an answer."""


class WorkerPool:
    """Several processes that are started once and work until the pool is left.

    Args:
        jobs: How many; each has its share of this process's threads.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._executor: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    def each(
        self, work: Callable[[_Task], _Done], tasks: Sequence[_Task]
    ) -> Iterator[tuple[_Task, _Done]]:
        """Do all tasks, and yield each with its result as it is done.

        Raises:
            LostWorkerError: If a process was killed; the next call starts new ones.
        """
        executor = self._started()
        with _sigint_ignored():
            waiting = {executor.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool:
            self._executor = None
            raise LostWorkerError(
                "a training process was killed, most often for its memory: fewer jobs"
            ) from None
        except BaseException:
            self._stop(executor)
            raise

    def _started(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._others = set(active_children())
            self._executor = ProcessPoolExecutor(
                max_workers=self.jobs,
                mp_context=torch.multiprocessing.get_context("spawn"),
                initializer=start_worker,
                initargs=(max(1, torch.get_num_threads() // self.jobs),),
            )
        return self._executor

    def _stop(self, executor: ProcessPoolExecutor) -> None:
        """Let nobody finish what nobody waits for."""
        self._executor = None
        executor.shutdown(wait=False, cancel_futures=True)
        for child in set(active_children()) - self._others:
            child.terminate()


def start_worker(threads: int) -> None:
    """Set up a training process: its share of the threads, and an eye on its parent.

    A parent that is killed outright cannot end its children: they would finish what
    nobody waits for, and then wait for work forever.
    """
    torch.set_num_threads(threads)
    watching = threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True)
    watching.start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Start processes that leave Ctrl-C to us: they inherit what is ignored now."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only that one may set handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
