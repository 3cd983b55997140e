import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.data import stratified_splits
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


@pytest.mark.parametrize(
    "y", [torch.zeros(0).long(), torch.zeros(3), torch.zeros(2, 2).long()]
)
def test_wrong_labels_are_refused(y):
    with pytest.raises(InputError, match=r"'y' must be a non-empty \[N\] tensor"):
        stratified_splits(y, 1, 0)


def test_no_splits_is_refused():
    with pytest.raises(InputError, match=r"'num_splits' must be in \[1, inf\)"):
        stratified_splits(torch.arange(3), 0, 0)
