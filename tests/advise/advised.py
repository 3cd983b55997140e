"""Graphs whose answer is known, and advice on them with a clock that stands still."""

from dataclasses import replace

import numpy as np
import torch

from ecg_gnn.advise import Stopwatch, advise, make_question
from ecg_gnn.config.run_config import replaced
from ecg_gnn.data import csbm, make_dataset


class Clock:
    """Stands still unless it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def told_graph(folder, *, helps=True, nodes=240):
    """A graph whose features say little, and vectors in a file that say more, or none.

    Neighbours in the file's space share a class, so that the mean of their features
    says what a single node's does not; its input edges join nodes at random.
    """
    graph = csbm(nodes=nodes, homophily=0.5, signal=1.5, features=4, degree=4, seed=3)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((nodes, 8)).astype(np.float32)
    if helps:
        place = rng.standard_normal((2, 8)) * 4
        vectors += place[graph.y.numpy()].astype(np.float32)
    np.save(folder / "vectors.npy", vectors)
    return graph, f"precomputed:{folder / 'vectors.npy'}"


def with_test_labels_flipped(graph):
    """The same graph, but the labels of the first split's test nodes are wrong."""
    test = graph.test_masks[0]
    y = torch.where(test, 1 - graph.y, graph.y)
    return replace(graph, y=y, name=graph.name)


def tiny_ring():
    nodes = np.arange(12)
    part = (nodes // 2) % 3
    return make_dataset(
        name="ring",
        x=np.random.default_rng(0).standard_normal((12, 3)),
        y=nodes % 2,
        edges=np.stack([nodes, (nodes + 1) % 12], axis=1),
        masks=tuple((part == each)[None] for each in range(3)),
    )


def short(question, steps=40, hidden=16):
    """The same question about narrower networks and briefer embeddings."""
    shape = replace(question.shape, steps=steps, hidden=hidden)
    config = replaced(question.config, {"embed.steps": 5, "embed.hidden": 8})
    return replace(question, shape=shape, config=config)


def advice_on(graph, *, steps=40, watch=None, say=lambda _: None, **asked):
    """Advice about the first split, without a limit unless a watch is given."""
    asked = {"splits": (0,), "ks": (5,), "device": "cpu"} | asked
    question = short(make_question(graph, **asked), steps)
    return advise(question, watch or Stopwatch(1e6, Clock()), say=say)
