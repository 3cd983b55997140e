"""Logits layer by layer are those of the whole network on the whole graphs."""

import pytest
import torch

from batch_trainings import (
    MODELS,
    labelled_task,
    network_for,
    plain_task,
    weighted_task,
)
from ecg_gnn.scale import LayerwiseInference
from ecg_gnn.scale.batches import NodeInputs
from ecg_gnn.scale.layerwise_inference import (
    cut_into_blocks,
    fits_at_once,
    rows_at_once,
)
from ecg_gnn.train.training_task import evaluation_input

WANTED = torch.tensor([39, 2, 17, 5, 30, 31, 0])


def check(task, network, limit):
    network.eval()
    layers = LayerwiseInference(network, NodeInputs(task), task.graphs, WANTED, limit)
    with torch.no_grad():
        expected = network(evaluation_input(task), task.graphs)[WANTED]
    for _ in range(2):  # what is kept for the next time changes nothing
        torch.testing.assert_close(layers.logits(), expected, atol=1e-5, rtol=1e-5)
    return layers


@pytest.mark.parametrize("limit", [None, 40])
@pytest.mark.parametrize(("backbone", "model"), MODELS)
def test_equals_the_whole(backbone, model, limit):
    task = plain_task()
    network = network_for(task, backbone=backbone, model=model)
    layers = check(task, network, limit)
    assert (len(layers._blocks[False]) > 3) == (limit is not None)


@pytest.mark.parametrize("backbone", ["benchmark", "tuned"])
def test_equals_the_whole_with_gates(backbone):
    task = plain_task()
    network = network_for(task, backbone=backbone, gate="node")
    for parameter in network.parameters():  # a gate starts as none
        parameter.data += 0.1 * torch.randn_like(parameter)
    check(task, network, 40)


@pytest.mark.parametrize("limit", [None, 40])
@pytest.mark.parametrize("make_task", [weighted_task, labelled_task])
def test_equals_the_whole_with_weights_and_labels(make_task, limit):
    task = make_task()
    check(task, network_for(task, model="gat-sep"), limit)


@pytest.mark.parametrize("backbone", ["benchmark", "tuned"])
def test_equals_the_whole_with_evolved_graphs_in_the_last_layer(backbone):
    task = plain_task()
    check(task, network_for(task, backbone=backbone, evolved_layers="last"), 40)


def test_equals_the_whole_after_an_input_layer():
    task = plain_task()
    options = {"input_linear": True}
    check(task, network_for(task, backbone="tuned", options=options), 40)


# --- Blocks ---------------------------------------------------------------------------


def test_blocks_hold_every_node_once_and_keep_the_limit():
    rows = torch.tensor([5, 1, 9, 1, 1, 1, 30, 1, 2])
    nodes = torch.tensor([8, 0, 1, 2, 6, 3, 4, 5, 7])
    blocks = cut_into_blocks(nodes, rows, limit=10)
    assert torch.equal(torch.cat(blocks), nodes)
    for block in blocks:
        assert rows[block][:-1].sum() < 10
    assert len(blocks) > 3


def test_what_is_one_block():
    assert fits_at_once(48_921, 2_000_000, 512)
    assert not fits_at_once(2_000_000, 2_000_000, 512)
    assert not fits_at_once(1000, 10**9, 8)
    assert 4 * 512 * rows_at_once(512) == 2**28
