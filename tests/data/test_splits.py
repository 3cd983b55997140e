import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.data import load_dataset
from ecg_gnn.data.splits import fewer_labels, stratified_splits
from ecg_gnn.system.checks import InputError


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 5), min_size=1, max_size=80),
    seed=st.integers(0, 2**40),
)
def test_every_class_gets_its_share(labels, seed):
    y = torch.tensor(labels)
    train, val, test = stratified_splits(y, 3, seed)
    assert torch.equal(train.int() + val.int() + test.int(), torch.ones(3, len(y)))
    for label in y.unique():
        of_class = y == label
        size = int(of_class.sum())
        for masks, share in ((train, 0.5), (val, 0.25), (test, 0.25)):
            got = (masks & of_class).sum(dim=1)
            assert ((got - share * size).abs() < 1).all()
        assert (train & of_class).any(dim=1).all()


def test_same_seed_same_splits_and_more_splits_keep_the_first():
    y = torch.arange(100) % 3
    few, many = stratified_splits(y, 2, 7), stratified_splits(y, 5, 7)
    for a, b in zip(few, many, strict=True):
        assert torch.equal(a, b[:2])
    assert not torch.equal(few[0], stratified_splits(y, 2, 8)[0])
    assert not torch.equal(many[0][0], many[0][1])


def test_each_node_is_drawn_about_half_the_time():
    train, val, test = stratified_splits(torch.arange(40) % 2, 2000, 0)
    for masks, share in ((train, 0.5), (val, 0.25), (test, 0.25)):
        # Five standard errors of a fraction of 2000 draws, at most 0.056.
        assert np.abs(masks.float().mean(dim=0).numpy() - share).max() < 0.056


def test_no_splits_is_refused():
    with pytest.raises(InputError, match=r"'num_splits' must be in \[1, inf\)"):
        stratified_splits(torch.arange(3), 0, 0)


@settings(max_examples=40, deadline=None)
@given(
    rates=st.lists(st.floats(0.01, 0.5), min_size=2, max_size=2),
    seed=st.integers(0, 2**40),
)
def test_fewer_labels_are_nested_and_of_every_class(rates, seed):
    y = torch.tensor([0] * 40 + [1] * 25 + [2] * 9 + [-1] * 6)
    train, _, _ = stratified_splits(y, 2, 0)
    few, many = (fewer_labels(y, train, rate, seed) for rate in sorted(rates))
    assert (few <= many).all()
    assert (many <= train).all()
    for mask, kept in zip(train, few, strict=True):
        trained = torch.bincount(y[mask], minlength=3)
        share = min(rates) * 74 / trained.sum()
        wanted = (share * trained.double()).round().clamp_min(1).long()
        counts = torch.bincount(y[kept], minlength=3)
        assert torch.equal(counts, wanted.minimum(trained))


def test_validation_and_test_nodes_stay_with_fewer_labels():
    board = load_dataset("minesweeper-gen:rows=10,cols=10")
    fewer = board.with_label_rate(0.1, 3)
    assert torch.equal(fewer.val_masks, board.val_masks)
    assert torch.equal(fewer.test_masks, board.test_masks)
    assert fewer.sha256 != board.sha256
    assert not torch.equal(fewer.train_masks, board.with_label_rate(0.1, 4).train_masks)


def test_fewer_labels_do_not_depend_on_labels_of_other_nodes():
    y = torch.arange(200) % 2
    train = (torch.arange(200) < 100)[None]
    flipped = torch.where(torch.arange(200) < 100, y, 0)
    few, same = (fewer_labels(labels, train, 0.05, 0) for labels in (y, flipped))
    assert few.sum() == 10
    assert torch.equal(few, same)
