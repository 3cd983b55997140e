"""Which neighbours are drawn: a function of a key and the node, and of nothing else.

Random numbers are hashes of (key, node, number of the draw). So a node draws the same
neighbours in whichever batch, worker or process it is met, as long as the key is the
same: batches that are shared out draw what they would have drawn whole.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Drawn(NamedTuple):
    """Edges that were drawn.

    Attributes:
        place: Whose edge it is: a place among the nodes that drew. ``[e]``
        edge: Which one, in target order. ``[e]``
    """

    place: Ints
    edge: Ints


def draw_edges(offsets: Ints, nodes: Ints, fanout: int, key: int) -> Drawn:
    """At most ``fanout`` of every node's incoming edges, each set equally likely.

    Args:
        offsets: Where each node's edges begin. ``[N + 1]``
        nodes: Who draws. ``[n]``
        fanout: How many edges, without replacement; -1: all of them.
        key: Decides what is drawn.
    """
    start = offsets[nodes]
    degree = offsets[nodes + 1] - start
    count = degree if fanout < 0 else np.minimum(degree, fanout)
    first = np.cumsum(count) - count
    place = np.repeat(np.arange(len(nodes)), count)
    edge = start[place] + np.arange(len(place)) - first[place]
    many = np.flatnonzero(degree > count)
    if len(many):
        picked = _distinct(degree[many], fanout, key, nodes[many])
        edge[first[many, None] + np.arange(fanout)] = start[many, None] + picked
    return Drawn(place, edge)


def uniform(nodes: Ints, key: int, draw: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each node, ``[n]``."""
    with np.errstate(over="ignore"):  # products wrap around, as they should
        state = _mix(nodes.astype(np.uint64) * _GOLDEN + np.uint64(key))
        bits = _mix(state + np.uint64(draw + 1) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _distinct(degree: Ints, count: int, key: int, nodes: Ints) -> Ints:
    """``count`` different numbers below each degree, by Floyd's algorithm, ``[n, c]``.

    Its cost does not depend on degrees: a hub is drawn from as fast as any node.
    """
    chosen = np.empty((len(degree), count), dtype=np.int64)
    for draw in range(count):
        top = degree - count + draw
        number = (uniform(nodes, key, draw) * (top + 1)).astype(np.int64)
        repeated = (chosen[:, :draw] == number[:, None]).any(axis=1)
        chosen[:, draw] = np.where(repeated, top, number)
    return chosen


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's hash."""
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLIERS[0]
    x = (x ^ (x >> np.uint64(27))) * _MULTIPLIERS[1]
    return x ^ (x >> np.uint64(31))
