"""What is read of nodes: their rows, and labels."""

import pytest
import torch

from batch_trainings import labelled_task, plain_task
from ecg_gnn.scale.batches import NodeInputs

NODES = torch.tensor([7, 3, 38, 0])


def test_rows():
    task = plain_task()
    inputs = NodeInputs(task)
    assert torch.equal(inputs.for_evaluation(NODES), task.x[NODES])
    x, learned = inputs.for_training(NODES, 2, seed=0, step=0)
    assert torch.equal(x, task.x[NODES])
    assert learned is None


# --- Labels ---------------------------------------------------------------------------


def columns(x):
    return x[:, -3:]


def test_to_predict_all_training_nodes_give_their_label():
    task = labelled_task()
    every = torch.arange(40)
    shown = columns(NodeInputs(task).for_evaluation(every))
    trains = torch.zeros(40, dtype=torch.bool)
    trains[task.train_index] = True
    assert torch.equal(shown.sum(1), trains.float())
    assert torch.equal(shown[trains].argmax(1), task.y[trains])


def test_a_seed_is_learned_or_gives_its_label():
    task = labelled_task(rate=0.4)
    inputs, nodes = NodeInputs(task), torch.cat([task.train_index, task.val_index])
    seeds, given = task.train_index.numel(), []
    for step in range(200):
        x, learned = inputs.for_training(nodes, seeds, seed=0, step=step)
        shown = columns(x).sum(1)
        assert torch.equal(shown[:seeds], 1 - learned)
        assert not shown[seeds:].any()
        given.append(shown[:seeds].mean())
    assert torch.stack(given).mean().item() == pytest.approx(0.4, abs=0.03)


def test_whether_a_node_gives_its_label_is_its_own_business():
    inputs, nodes = NodeInputs(labelled_task()), labelled_task().train_index
    whole, _ = inputs.for_training(nodes, 5, seed=0, step=3)
    part, _ = inputs.for_training(nodes[7:], 2, seed=0, step=3)
    assert torch.equal(whole[7:], part)
    other, _ = inputs.for_training(nodes, 5, seed=0, step=4)
    assert not torch.equal(whole, other)
