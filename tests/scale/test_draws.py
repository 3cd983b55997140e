"""Draws: without replacement, all sets alike, and each node's own business."""

from itertools import combinations

import numpy as np
import pytest

from ecg_gnn.scale.draws import draw_edges, uniform

DEGREES = np.array([0, 1, 2, 3, 5, 8, 40, 1000])
OFFSETS = np.concatenate([[0], np.cumsum(DEGREES)])
NODES = np.arange(len(DEGREES))


@pytest.mark.parametrize("fanout", [1, 2, 3, 10, 39])
def test_distinct_edges_of_the_node_itself(fanout):
    place, edge = draw_edges(OFFSETS, NODES, fanout, key=5)
    assert np.array_equal(np.bincount(place, minlength=8), np.minimum(DEGREES, fanout))
    assert len(np.unique(edge)) == len(edge)
    assert ((OFFSETS[place] <= edge) & (edge < OFFSETS[place + 1])).all()


def test_minus_one_is_all():
    place, edge = draw_edges(OFFSETS, NODES[::-1], -1, key=5)
    assert np.array_equal(np.sort(edge), np.arange(OFFSETS[-1]))
    assert np.array_equal(np.bincount(place, minlength=8), DEGREES[::-1])


def test_every_set_is_equally_likely():
    """Pairs out of four edges, drawn by 24,000 nodes."""
    nodes = np.arange(24_000)
    _, edge = draw_edges(4 * np.arange(24_001), nodes, 2, key=9)
    pairs = np.sort(edge.reshape(-1, 2) % 4, axis=1)
    counts = [(pairs == pair).all(1).sum() for pair in combinations(range(4), 2)]
    assert sum(counts) == 24_000
    assert np.abs(np.array(counts) - 4000).max() < 5 * np.sqrt(4000)


def test_a_node_draws_the_same_in_any_company():
    place, edge = draw_edges(OFFSETS, NODES, 3, key=1)
    for node in NODES:
        _, alone = draw_edges(OFFSETS, np.array([node]), 3, key=1)
        assert np.array_equal(alone, edge[place == node])


def test_another_key_draws_others():
    draws = [draw_edges(OFFSETS, NODES[-1:], 5, key=key).edge for key in range(50)]
    assert len({tuple(edges) for edges in draws}) == 50


def test_uniform_numbers():
    numbers = uniform(np.arange(40_000), key=2**62)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, 10, (0, 1))[0]
    assert np.abs(counts - 4000).max() < 5 * np.sqrt(4000)
    again = uniform(np.arange(40_000), key=2**62, draw=1)
    assert abs(np.corrcoef(numbers, again)[0, 1]) < 0.03
