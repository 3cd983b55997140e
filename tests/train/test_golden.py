"""Losses of every model, frozen: a change of code that keeps them changes no numbers.

The graph is made of integer arithmetic, so that nothing but networks, seeds and the
training loop decides. After a change that is meant to change numbers, write them anew
with ``python tests/train/test_golden.py --write`` and say so in the change.
"""

import json
import sys
from pathlib import Path

import pytest
import torch

from ecg_gnn.config.classify_settings import BACKBONES, model_names
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import (
    GraphInput,
    NetworkSpec,
    build_network,
    traits_of,
)
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, Task
from toy_graphs import train

GOLDEN = Path(__file__).with_name("golden_losses.json")
NUM_NODES, FEATURES, NUM_CLASSES = 60, 7, {"benchmark": 3, "tuned": 2}
CASES = [
    f"{backbone}/{model}/{graphs}"
    for backbone in BACKBONES
    for model in model_names(backbone)
    for graphs in ("baseline", "ecg")
]


def edges_of(*rules):
    """For each rule ``(factor, shift)`` an edge ``factor * u + shift -> u``."""
    node = torch.arange(NUM_NODES)
    sources = [(factor * node + shift) % NUM_NODES for factor, shift in rules]
    edges = torch.stack([torch.cat(sources), node.repeat(len(rules))])
    return torch.unique(edges[:, edges[0] != edges[1]], dim=1)


def make_task(backbone, model, num_graphs):
    node, column = torch.arange(NUM_NODES)[:, None], torch.arange(FEATURES)
    given = edges_of((1, 7), (3, 1), (7, 5))
    given = torch.unique(torch.cat([given, given.flip(0)], dim=1), dim=1)
    loops = traits_of(backbone, model).self_loops
    graphs = [
        GraphInput(Adjacency.from_edge_index(given, NUM_NODES, add_self_loops=loops)),
        GraphInput(
            Adjacency.from_edge_index(edges_of((5, 2), (11, 3), (1, 29)), NUM_NODES),
            drop_edge=0.5,
        ),
    ]
    part = torch.arange(NUM_NODES) % 4
    return Task(
        x=((7 * node + 13 * column + node * column) % 11) / 5.5 - 1,
        y=(node[:, 0] ** 2 + node[:, 0] // 5) % NUM_CLASSES[backbone],
        graphs=graphs[:num_graphs],
        train_index=(part < 2).nonzero()[:, 0],
        val_index=(part == 2).nonzero()[:, 0],
        test_index=(part == 3).nonzero()[:, 0],
        metric="roc_auc" if NUM_CLASSES[backbone] == 2 else "accuracy",
    )


def losses_of(case):
    backbone, model, graphs = case.split("/")
    task = make_task(backbone, model, 1 if graphs == "baseline" else 2)
    with seeded(0, "initialisation"):
        network = build_network(
            NetworkSpec(
                backbone=backbone,
                model=model,
                in_channels=FEATURES,
                hidden=16,
                num_classes=NUM_CLASSES[backbone],
                layers=2,
                num_graphs=len(task.graphs),
                dropout=0.2,
            )
        )
    return train(network, task, LoopSettings(steps=5, lr=1e-3), seed=0).losses


def test_every_model_has_golden_losses():
    assert sorted(json.loads(GOLDEN.read_text())) == sorted(CASES)
    assert len(CASES) == 2 * (8 + 4)


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_losses_are_golden(case, engine):
    expected = json.loads(GOLDEN.read_text())[case]
    with using_engine(engine):
        assert losses_of(case) == pytest.approx(expected, abs=1e-5, rel=0)


def test_golden_losses_tell_cases_apart():
    golden = json.loads(GOLDEN.read_text()).values()
    assert len({tuple(losses) for losses in golden}) == len(CASES)


if __name__ == "__main__" and "--write" in sys.argv:
    golden = {case: [round(loss, 7) for loss in losses_of(case)] for case in CASES}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
