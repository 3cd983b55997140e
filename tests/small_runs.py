"""Settings small enough to train in a moment, and what tests of runs share."""

from contextlib import contextmanager

import numpy as np
import torch

from ecg_gnn.config import (
    EmbedConfig,
    EvolveConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
)
from ecg_gnn.data import load_dataset
from ecg_gnn.pipeline import Classification, classify, evolve, resolve
from ecg_gnn.pipeline.workspace import ALONE

BOARD = "minesweeper-gen:rows=8,cols=8"
SMALL = ["--steps", "3", "--splits", "0-1", "--hidden", "8", "--layers", "1"]
SMALL += ["--k", "3", "--embed-hidden", "8"]
RUN = ["run", "--dataset", BOARD, *SMALL]
STATISTICS = {
    "edge_homophily",
    "node_homophily",
    "class_homophily",
    "adjusted_homophily",
    "label_informativeness",
    "num_edges",
}


def small_config(*embeddings, model="gcn", backbone="benchmark", splits=(0, 1), **rest):
    """One layer of eight channels for four steps."""
    evolve = rest.pop("evolve", EvolveConfig(k=3))
    return RunConfig(
        dataset=rest.pop("dataset", BOARD),
        splits=splits,
        embed=EmbedConfig(names=embeddings or ("mlp",), hidden=8, layers=1),
        evolve=evolve,
        model=ModelConfig(name=model, backbone=backbone, layers=1, hidden=8),
        train=TrainConfig(steps=4, lr=1e-2),
        **rest,
    )


def small_board():
    return load_dataset(BOARD)


def edges_of(*arguments):
    """The edges of the evolved graph, ``[2, E]``."""
    return evolve(*arguments).edge_index


def train_one(dataset, split, evolved, config, workspace=ALONE, **job):
    """One training: the network and its numbers."""
    job = Classification(split, evolved, **job)
    return classify(dataset, [job], config, workspace)[0]


def resolved(dataset, *embeddings, **settings):
    return resolve(small_config(*embeddings, **settings), dataset)


def ring_arrays(num_nodes=12, **changed):
    """A ring with two classes and one split, as an .npz file has it."""
    nodes = np.arange(num_nodes)
    part = (nodes // 2) % 3
    found = {
        "node_features": np.random.default_rng(0).standard_normal((num_nodes, 3)),
        "node_labels": nodes % 2,
        "edges": np.stack([nodes, (nodes + 1) % num_nodes], axis=1),
        "train_masks": (part == 0)[None],
        "val_masks": (part == 1)[None],
        "test_masks": (part == 2)[None],
    }
    return found | changed


@contextmanager
def threads(count):
    """How many threads there are changes the order of sums, so it is fixed here."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
