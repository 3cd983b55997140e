"""Nodes whose class nobody knows, and folders that are whole or not there."""

import numpy as np
import pytest
import torch

from ecg_gnn.data import describe, make_dataset, write_npz
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_folder


def ring(num_unlabelled=3, **options):
    nodes = np.arange(24)
    y = np.where(nodes < num_unlabelled, -1, nodes % 2)
    edges = np.stack([nodes, (nodes + 1) % 24], axis=1)
    x = np.random.default_rng(0).standard_normal((24, 2))
    return make_dataset(name="ring", x=x, y=y, edges=edges, **options)


def test_they_must_be_allowed():
    with pytest.raises(InputError, match="must not be negative"):
        ring()
    assert ring(unlabelled=True).num_unlabelled == 3
    assert ring(0).num_unlabelled == 0


def test_they_are_in_no_split():
    dataset = ring(unlabelled=True)
    for one in (dataset, dataset.with_random_splits(2, seed=5)):
        used = one.train_masks | one.val_masks | one.test_masks
        assert not used[:, :3].any()
        assert used[:, 3:].all()
    mask = np.arange(24) % 3
    masks = tuple((mask == part)[None] for part in range(3))
    with pytest.raises(InputError, match=r"must have a label \(got node 0 without"):
        ring(unlabelled=True, masks=masks)


def test_splits_of_whole_graphs_are_the_same_as_ever():
    plain, allowed = ring(0), ring(0, unlabelled=True)
    assert torch.equal(plain.train_masks, allowed.train_masks)
    assert plain.sha256 == allowed.sha256
    assert plain.labelled_part(plain.edge_index)[0] is plain.edge_index


def test_what_is_said_about_them(tmp_path):
    dataset = ring(unlabelled=True)
    found = describe(dataset)
    assert found["unlabelled_nodes"] == 3
    assert sum(found["class_counts"]) == 21
    edges, y = dataset.labelled_part(dataset.edge_index)
    assert (y.numel(), edges.size(1)) == (21, 40)
    with pytest.raises(InputError, match=r"must have a class \(got 3 without"):
        write_npz(dataset, tmp_path / "g.npz")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_whole_or_not_there(tmp_path):
    def fail_halfway():
        with atomic_folder(tmp_path / "a/f") as folder:
            (folder / "x").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail_halfway()
    assert not (tmp_path / "a").exists()
    with atomic_folder(tmp_path / "a/f") as folder:
        (folder / "x").write_text("whole")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["f"]
    with pytest.raises(OSError, match="not empty"), atomic_folder(tmp_path / "a/f"):
        pass
    assert (tmp_path / "a/f/x").read_text() == "whole"
