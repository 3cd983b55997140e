"""Worker processes for training; they end with the process that started them."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from typing import TypeVar

import torch

_CHECK_SECONDS = 1.0
_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


class LostWorkerError(MemoryError):
    """A process ended without an answer."""


class WorkerPool:
    """Processes, with a share of the threads each, that are started when needed."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._executor: ProcessPoolExecutor | None = None
        self._not_ours: set[BaseProcess] = set()

    def close(self) -> None:
        """Wait for what still runs, and end all processes."""
        if self._executor is not None:
            self._executor.shutdown()

    def each(
        self, work: Callable[[_Task], _Answer], tasks: Sequence[_Task]
    ) -> Iterator[tuple[_Task, _Answer | Exception]]:
        """Do all tasks, and yield each with its answer, or its error, as it ends."""
        if self._executor is None:
            self._not_ours = set(active_children())
            self._executor = ProcessPoolExecutor(
                max_workers=self.jobs,
                mp_context=torch.multiprocessing.get_context("spawn"),
                initializer=start_worker,
                initargs=(max(1, torch.get_num_threads() // self.jobs), os.getpid()),
            )
        executor = self._executor
        try:
            # Submitting starts processes, which must never hear Ctrl-C.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                tasks_of = {executor.submit(work, task): task for task in tasks}
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for future in as_completed(tasks_of):
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise error
                answer = error if isinstance(error, Exception) else future.result()
                yield tasks_of[future], answer
        except BrokenProcessPool:
            self._executor = None
            raise LostWorkerError(
                "a training process was killed, most often for its memory: fewer jobs"
            ) from None
        except BaseException:  # nothing waits for what the processes still do
            self._executor = None
            executor.shutdown(wait=False, cancel_futures=True)
            for child in set(active_children()) - self._not_ours:
                child.terminate()
            raise


def start_worker(threads: int, parent: int) -> None:
    """Limit a worker's threads, and end it when its parent, perhaps killed, is gone.

    Ctrl-C reaches the whole group of processes; the parent handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    watcher = threading.Thread(target=_exit_after, args=(parent,), daemon=True)
    watcher.start()


def _exit_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_CHECK_SECONDS)
    os._exit(1)
