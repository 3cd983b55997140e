"""Folds and the neighbour table: parts of one whole, and no node sees its label."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.ensemble.inputs import PARTS, GraphInputs, Target, neighbour_table
from ecg_gnn.ensemble.members import make_folds
from ecg_gnn.system.checks import InputError


@st.composite
def graphs(draw):
    num_nodes = draw(st.integers(3, 12))
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), min_size=1, max_size=40))
    directed = draw(st.booleans())
    edges = torch.tensor(pairs + ([] if directed else [(b, a) for a, b in pairs])).t()
    x = np.arange(2 * num_nodes, dtype=np.float32).reshape(num_nodes, 2)
    return GraphInputs.of(x, edges)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 10**6), st.booleans())
def test_no_row_shows_the_label_of_its_own_node(inputs, seed, is_number):
    """Over two steps a path may come back to where it began: it must not count."""
    generator = np.random.default_rng(seed)
    count = inputs.num_nodes
    known = generator.random(count) < 0.8
    node = int(generator.integers(count))
    known[node] = True
    if is_number:
        values, other = generator.normal(size=count), 100.0
    else:
        values, other = generator.integers(0, 2, count), 2
    changed = values.copy()
    changed[node] = other
    # The overall mean is in every row on purpose; so is it here, once for both.
    tables = []
    for each in (values, changed):
        target = Target(each, 0 if is_number else 3)
        tables.append(neighbour_table(inputs, PARTS, target.knowing(known))[node])
    width = 1 if is_number else 3
    label_columns = (1 + len(inputs.ways)) * 2 * (width + 1)
    (rest, first), (others, second) = (
        (row[:-label_columns], row[-label_columns:]) for row in tables
    )
    np.testing.assert_allclose(rest, others)
    for each in range(0, label_columns, 2 * (width + 1)):
        part = slice(each, each + 2 * (width + 1))
        np.testing.assert_allclose(
            _without_prior(first[part], Target(values, 0 if is_number else 3), known),
            _without_prior(second[part], Target(changed, 0 if is_number else 3), known),
            atol=1e-3,
        )


def _without_prior(row, target, known):
    """Label columns with the share of the overall mean taken out again."""
    width = target.width
    prior = target.knowing(known).columns.sum(axis=0) / known.sum()
    once, count = row[:width], np.expm1(row[width])
    twice, count_2 = row[width + 1 : -1], np.expm1(row[-1])
    return np.concatenate(
        [once * (count + 1) - prior, twice * (count_2 + 0.1) - 0.1 * prior]
    )


def test_directions_are_read_apart_where_edges_lead_one_way():
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 4]])  # 0 and 1 both ways
    x = np.arange(5, dtype=np.float32)[:, None] + 1
    inputs = GraphInputs.of(x, edges)
    pairs = sorted(zip(*inputs.adjacency.nonzero(), strict=True))
    assert pairs == [(0, 1), (1, 0), (2, 3), (3, 2), (3, 4), (4, 3)]
    arriving, leaving = inputs.ways
    assert arriving.means_of_neighbours[:, 0].tolist() == [2, 1, 0, 3, 4]
    assert leaving.means_of_neighbours[:, 0].tolist() == [2, 1, 4, 5, 0]
    both = GraphInputs.of(x, torch.cat([edges, edges.flip(0)], dim=1))
    assert both.ways == ()
    # New nodes do not make an undirected graph of one that was not, nor one of it.
    assert inputs.of_graph(x, torch.tensor([[0, 1], [1, 0]])).ways
    assert not both.of_graph(x, edges).ways


@settings(deadline=None)
@given(st.integers(8, 60), st.integers(2, 5), st.integers(0, 100))
def test_folds_hold_every_node_out_once(count, num_folds, seed):
    target = Target(np.arange(count) % 3, 3)
    labelled = np.flatnonzero(np.arange(count) % 7 != 0)
    if len(labelled) < 2 * num_folds:
        return
    folds = make_folds(target, labelled, num_folds, seed)
    held_out = np.concatenate([fold.held_out for fold in folds])
    assert sorted(held_out) == labelled.tolist()
    for fold in folds:
        assert not set(fold.train) & set(fold.held_out)
        assert len(fold.train) + len(fold.held_out) == len(labelled)
        shares = np.bincount(target.values[fold.held_out], minlength=3)
        assert np.ptp(shares) <= 2 * len(labelled) / (3 * num_folds) + 2


def test_too_few_labels_are_refused():
    with pytest.raises(InputError, match="at least 10 nodes must have a label"):
        make_folds(Target(np.array([0, 1, 0]), 2), np.arange(3), 5, 0)


def test_many_sparse_columns_are_projected_and_kept():
    generator = np.random.default_rng(0)
    words = (generator.random((200, 300)) < 0.03).astype(np.float32)
    x = np.column_stack([generator.normal(size=200), words]).astype(np.float32)
    inputs = GraphInputs.of(x, torch.tensor([[0, 1], [1, 0]]))
    assert inputs.sparse.shape == (200, 300)
    assert inputs.columns.shape == (200, 65)
    assert inputs.dense.shape == (200, 2)  # the number, and the degree
