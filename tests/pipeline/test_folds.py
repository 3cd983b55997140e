"""Folds of cross-fitting: dealt evenly, from the seed, without looking at labels."""

import pytest
import torch

from ecg_gnn.pipeline.cross_fit import assign_folds, check_folds
from ecg_gnn.system.checks import InputError


def train_mask(num_nodes=50, num_train=23):
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))
    return order < num_train


@pytest.mark.parametrize("num_folds", [2, 5, 23])
def test_all_kinds_of_nodes_are_dealt_evenly(num_folds):
    mask = train_mask()
    folds = assign_folds(mask, num_folds, seed=1)
    for part in (mask, ~mask):
        counts = folds[part].bincount(minlength=num_folds)
        assert counts.numel() == num_folds
        assert counts.max() - counts.min() <= 1


def test_the_seed_decides():
    mask = train_mask()
    first, again, other = (assign_folds(mask, 5, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_more_folds_than_nodes_are_refused():
    message = r"'cross_fit' must be in \[2, 23\], the number of .* \(got 24\)"
    with pytest.raises(InputError, match=message):
        check_folds(train_mask(), 24)
