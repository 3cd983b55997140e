"""A small graph, and candidates that take a second."""

import numpy as np
import pytest
import torch

from ecg_gnn import load_dataset
from ecg_gnn.ensemble.inputs import GraphInputs, Target
from ecg_gnn.ensemble.members import make_folds


@pytest.fixture(scope="session")
def graph():
    return load_dataset("csbm:nodes=120")


@pytest.fixture(scope="session")
def inputs(graph):
    return GraphInputs.of(graph.x.numpy(), graph.edge_index)


@pytest.fixture(scope="session")
def target(graph):
    return Target(graph.y.numpy(), graph.num_classes)


@pytest.fixture(scope="session")
def numbers(graph):
    """A number to predict that the features tell."""
    values = graph.x[:, 0].numpy() + 0.1 * np.cos(np.arange(graph.num_nodes))
    return Target(values.astype(np.float32), 0)


@pytest.fixture(scope="session")
def labelled(graph):
    return np.arange(0, graph.num_nodes, 2)


@pytest.fixture(scope="session")
def folds(target, labelled):
    return dict(enumerate(make_folds(target, labelled, 3, seed=0)))


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
