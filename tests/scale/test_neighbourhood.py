"""What is read of nodes: their rows, from a file if they lie there, and labels."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from batch_trainings import labelled_task, plain_task
from ecg_gnn.reading import MappedFile
from ecg_gnn.scale.batches import NodeInputs
from ecg_gnn.system.checks import InputError

NODES = torch.tensor([7, 3, 38, 0])


@pytest.fixture
def mapped(tmp_path):
    """A task whose features lie in a file."""
    task = plain_task()
    path = tmp_path / "x.npy"
    np.save(path, task.x.numpy())
    file = MappedFile.of("x", np.load(path, mmap_mode="r"))
    return replace(task, x=torch.from_numpy(file.array())), file


def test_rows():
    task = plain_task()
    inputs = NodeInputs(task)
    assert torch.equal(inputs.for_evaluation(NODES), task.x[NODES])
    x, learned = inputs.for_training(NODES, 2, seed=0, step=0)
    assert torch.equal(x, task.x[NODES])
    assert learned is None


def test_rows_of_a_file_are_read_when_they_are_asked_for(mapped):
    task, file = mapped
    inputs = NodeInputs(task, file)
    with file.path.open("r+b") as written:  # behind our back
        written.seek(file.offset + 38 * 6 * 4)
        written.write(np.full(6, 42, np.float32).tobytes())
    assert inputs.for_evaluation(NODES)[2].tolist() == [42] * 6


def test_another_process_opens_the_file_itself(mapped):
    task, file = mapped
    inputs = NodeInputs(task, file)
    sent = pickle.dumps(inputs)
    assert len(sent) < len(pickle.dumps(NodeInputs(task)))
    there = pickle.loads(sent)
    assert torch.equal(there.for_evaluation(NODES), task.x[NODES])


def test_a_file_that_was_cut_short_is_one_line(mapped):
    task, file = mapped
    inputs = NodeInputs(task, file)
    os.truncate(file.path, 500)
    message = r"x.npy: must have 1088 bytes, as its header says \(got 500: the file was"
    with pytest.raises(InputError, match=message):
        inputs.for_evaluation(NODES)
    file.path.unlink()
    with pytest.raises(InputError, match=r"cannot be read any more \(No such file"):
        inputs.for_evaluation(NODES)


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
