"""A process that is given less memory than its stages need; what it then says.

A kNN search keeps to the memory that it is given. Of every other stage there is one
line: its name, the kind of error, and the message.
"""

import gc
import resource
import sys
from contextlib import contextmanager

import torch

from ecg_gnn.config import EmbedConfig, ModelConfig, RunConfig, TrainConfig
from ecg_gnn.data import load_dataset
from ecg_gnn.evolve import knn_graph
from ecg_gnn.kernels import using_engine
from ecg_gnn.pipeline import embed
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.system.machine import out_of_memory
from small_runs import train_one

NODES = 8000
WIDTH, NARROW = 512, 128  # a state of all nodes takes 16 MB, or 4 MB
MORE = 24 << 20
BATCHES = {"batch_size": 4000, "fanout": (-1,)}
SMALL_BATCHES = {"batch_size": 8, "fanout": (1,), "eval_every": 1}


@contextmanager
def at_most(more):
    """Let this process have so many bytes more than it has."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + more, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def stages(graph):
    split = graph.split(0)

    def config(hidden=WIDTH, **train):
        wanted = RunConfig(
            dataset=graph.name,
            device="cpu",
            engine="reference",  # nothing is to be compiled or loaded on the way
            embed=EmbedConfig(hidden=WIDTH, steps=1),
            model=ModelConfig(name="sage", layers=2, hidden=hidden),
            train=TrainConfig(steps=1, **train),
        )
        return resolve(wanted, graph)

    yield "mlp", lambda: embed("mlp", graph, split, config())
    yield "bgrl", lambda: embed("bgrl", graph, split, config())
    yield "full batch", lambda: train_one(graph, split, [], config())
    yield "batches", lambda: train_one(graph, split, [], config(**BATCHES))
    narrow = config(NARROW, **SMALL_BATCHES)  # its steps fit
    yield "inference", lambda: train_one(graph, split, [], narrow)


def search(z):
    """A search whose scores of all pairs would take more than there is."""
    want = knn_graph(z, 5)
    with using_engine("reference"), at_most(MORE):
        assert torch.equal(knn_graph(z, 5, memory=4 << 20), want)


def main():
    torch.set_num_threads(1)
    graph = load_dataset(f"csbm:nodes={NODES},features=8")
    search(torch.randn(5000, 64))
    for name, stage in stages(graph):
        try:
            with at_most(MORE):
                stage()
        except (MemoryError, RuntimeError) as error:
            kind = type(error).__name__ if out_of_memory(error) else "other"
            sys.stdout.write(f"{name}\t{kind}\t{error}\n")
        else:
            sys.stdout.write(f"{name}\tfits\t\n")


if __name__ == "__main__":
    main()
