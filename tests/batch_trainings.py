"""Trainings by batches of small tasks, and what their tests share."""

from dataclasses import replace

import torch

from ecg_gnn.kernels import Adjacency
from ecg_gnn.scale import Batching, BatchTraining
from ecg_gnn.train import LabelInput, LoopSettings, train_together
from toy_graphs import make_network, make_task

CONFIG = LoopSettings(steps=12, lr=1e-2)
ALL_AT_ONCE = Batching(size=1000, fanouts=(-1, -1))
SMALL = Batching(size=6, fanouts=(2, 3))
MODELS = [
    *(("benchmark", m) for m in ("resnet", "gcn", "sage", "gat", "gat-sep")),
    *(("benchmark", m) for m in ("gt", "gt-sep")),
    *(("tuned", m) for m in ("gcn", "sage", "gat")),
]


def plain_task(num_classes=3):
    """Two graphs, nothing random in them."""
    return make_task(num_classes, evolved=True)


def weighted_task():
    """Evolved edges that weigh differently."""
    task = plain_task()
    edges = task.graphs[1].adjacency.edge_index()
    weights = 0.1 + torch.arange(edges.size(1)) % 5
    adjacency = Adjacency.from_edge_index(edges, task.x.size(0), edge_weight=weights)
    return replace(
        task, graphs=[task.graphs[0], replace(task.graphs[1], adjacency=adjacency)]
    )


def labelled_task(rate=0.5):
    """Training labels are input, too."""
    return replace(plain_task(), labels=LabelInput(rate=rate, num_classes=3))


def network_for(task, **options):
    """A small network with room for labels, where they are input."""
    columns = 0 if task.labels is None else task.labels.num_classes
    wider = replace(task, x=torch.nn.functional.pad(task.x, (0, columns)))
    return make_network(wider, **{"dropout": 0.0} | options)


def training_of(task, batching=SMALL, *, config=CONFIG, seed=0, **options):
    """A training that has not begun."""
    names = ("checkpoint", "eval_every")
    given = {name: options.pop(name, None) for name in names}
    network = network_for(task, **options)
    return BatchTraining(network, task, config, batching, seed=seed, **given)


def train_by_batches(task, batching=SMALL, **options):
    """The trained network and its numbers."""
    training = training_of(task, batching, **options)
    (result,) = train_together([training])
    return training.network, result
