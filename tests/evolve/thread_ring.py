"""A ring whose processes are threads: what goes round is seen, and it is quick."""

import queue
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError

import torch

from ecg_gnn.evolve.streamed.finished import InMemory
from ecg_gnn.evolve.streamed.ring import Ring
from ecg_gnn.evolve.streamed.rows import Rows
from ecg_gnn.evolve.streamed.sharded import search_sharded

_SECONDS = 60


class ThreadRing(Ring):
    """One thread's view of a ring."""

    def bind(self, links, barrier, board):
        for name, value in {"links": links, "barrier": barrier, "board": board}.items():
            object.__setattr__(self, name, value)
        return self

    def _everybody(self, value):
        self.board[self.rank] = value
        self.barrier.wait(_SECONDS)
        values = list(self.board)
        self.barrier.wait(_SECONDS)
        return values

    def least(self, value):
        return min(self._everybody(value))

    def most(self, value):
        return max(self._everybody(value))

    def tell(self, tensor, teller=0):
        return self._everybody(tensor)[teller].clone()

    def start_exchange(self, own, other):
        self.links[self.rank].put(own.clone())

        def finish():
            came = self.links[(self.rank - 1) % self.size].get(timeout=_SECONDS)
            assert came.shape == other.shape
            other.copy_(came)

        return finish


def sharded_neighbours(z, k, metric, key, memory, size, finished=None):
    """The neighbours [N, k] that ``size`` processes find together."""
    rows = Rows.of(z)
    finished = finished or InMemory(rows.num_nodes, k)
    links = [queue.Queue() for _ in range(size)]
    barrier, board = Barrier(size), [None] * size

    def one(rank):
        ring = ThreadRing(rank, size, None, torch.device("cpu"))
        ring.bind(links, barrier, board)
        try:
            search_sharded(
                rows, metric, k, key, memory, ring, finished, lambda count: None
            )
        except Exception as error:
            barrier.abort()
            return error

    with ThreadPoolExecutor(size) as pool:
        errors = list(filter(None, pool.map(one, range(size))))
    for error in sorted(errors, key=lambda e: isinstance(e, BrokenBarrierError)):
        raise error
    assert all(link.empty() for link in links)
    return finished.collect()
