"""A graph as one table: a node's own features, its neighbours', and their labels."""

from collections.abc import Collection

import numpy as np

from ecg_gnn.ensemble.inputs import Floats, GraphInputs, Target

HOPS = ("hop1", "hop2")
PARTS = (*HOPS, "labels")
"""What a table may have beside a node's own features."""
# Weights of the overall mean among neighbours' labels: few neighbours say little.
_PRIOR_1, _PRIOR_2 = 1.0, 0.1


def neighbour_table(
    inputs: GraphInputs, parts: Collection[str], target: Target
) -> Floats:
    """Features of every node, ``[N, F]``.

    The parts are some of ``PARTS``: means over neighbours, means over their neighbours,
    and what is known of the labels among both; a node never sees its own. Where edges
    lead one way only, also over the neighbours they come from, and over those they lead
    to.
    """
    blocks, readings = [inputs.columns], (inputs, *inputs.ways)
    if "hop1" in parts:
        blocks += [each.means_of_neighbours for each in readings]
    if "hop2" in parts:
        blocks.append(inputs.means_of_two_hops)
    if "labels" in parts:
        for each in readings:
            blocks += _labels_nearby(each, target)
    return np.hstack(blocks).astype(np.float32)


def _labels_nearby(inputs: GraphInputs, target: Target) -> list[Floats]:
    """Mean labels among neighbours and among theirs, and how many are known."""
    adjacency, labels = inputs.adjacency, target.columns
    seen = target.known.astype(np.float32)[:, None]
    prior = labels.sum(axis=0) / max(float(seen.sum()), 1.0)
    count = adjacency @ seen
    once = (adjacency @ labels + _PRIOR_1 * prior) / (count + _PRIOR_1)
    # Paths of two edges, each node in the middle weighing one in all. Those that come
    # back to where they began are taken out: they would show a node its own label.
    share = (1 / np.maximum(inputs.degrees, 1))[:, None]
    back = adjacency.multiply(adjacency.T) @ share

    def two_steps(values: Floats) -> Floats:
        paths: Floats = adjacency @ (share * (adjacency @ values)) - back * values
        return paths

    count_2 = np.maximum(two_steps(seen), 0)
    twice = (two_steps(labels) + _PRIOR_2 * prior) / (count_2 + _PRIOR_2)
    return [once, np.log1p(count), twice, np.log1p(count_2)]
