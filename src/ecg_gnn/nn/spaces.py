"""Where nodes stand in a graph and what surrounds them, told by its edges alone.

Edges count in both directions, repeated ones once and self-loops not at all. All of it
is computed on the host, is the same every time, and holds no matrix of N x N.
"""

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

BINS_PER_OCTAVE = 4
_CELLS = 2**26  # of a block of rows by all nodes, most of them empty
_LANDMARKS = 64
_POINCARE_STEPS, _POINCARE_RATE, _NEGATIVES = 300, 0.1, 10
_INSIDE = 1 - 1e-5  # how close to the rim of the disc a node may come


def neighbourhoods(edge_index: Tensor, num_nodes: int) -> csr_array:
    """The adjacency matrix of ones, ``[N, N]``."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]].cpu().numpy()
    ends = np.r_[source, target], np.r_[target, source]
    ones = np.ones(len(ends[0]), dtype=np.float32)
    matrix = csr_array((ones, ends), shape=(num_nodes, num_nodes))  # adds up repeats
    matrix.data[:] = 1
    return matrix


def degree_rings(edges: csr_array, hops: int) -> Tensor:
    """How the degrees of the nodes at distance 0, 1, ..., K are distributed.

    ``[N, K + 1, B]``: the share of them that is in a bin or below it, bin b holding
    degrees d with ``floor(4 log2(1 + d)) = b``. Zeros where no node is so far away.
    """
    num_nodes = edges.shape[0]
    degree = np.diff(edges.indptr)
    bins = (BINS_PER_OCTAVE * np.log2(1 + degree)).astype(np.int64)
    shape = num_nodes, bins.max(initial=0) + 1
    one = np.ones(num_nodes, dtype=np.float32)
    own = csr_array((one, (np.arange(num_nodes), bins)), shape=shape)
    out = np.zeros((num_nodes, hops + 1, shape[1]), dtype=np.float32)
    out[:, 0] = own.toarray()
    step = (edges + eye_array(num_nodes, dtype=np.float32)).tocsr()
    rows = max(1, _CELLS // max(1, num_nodes))
    for first in range(0, num_nodes, rows):
        nodes = slice(first, first + rows)
        ball, inside = step[nodes], out[nodes, 0]
        for hop in range(1, hops + 1):
            if hop > 1:
                ball = ball @ step
                ball.data[:] = 1
            before, inside = inside, (ball @ own).toarray()
            ring = inside - before  # whole numbers
            out[nodes, hop] = ring / np.maximum(ring.sum(1, keepdims=True), 1)
    return torch.from_numpy(out.cumsum(2))


def isomap(edges: csr_array, dims: int) -> Tensor:
    """Places whose distances are nearly those along edges, ``[N, dims]``.

    Landmark Isomap (de Silva and Tenenbaum, 2003): classical scaling of the distances
    between 64 random nodes, into which all others are put by their distances to them.
    Nodes that no path joins are one step further apart than any others.
    """
    num_nodes = edges.shape[0]
    drawn = np.random.default_rng(0).permutation(num_nodes)[:_LANDMARKS]
    paths = [dijkstra(edges, unweighted=True, indices=node) for node in drawn]
    far = np.stack(paths).astype(np.float32)  # [landmarks, N]
    far[np.isinf(far)] = far[np.isfinite(far)].max() + 1
    squares = torch.from_numpy(far).double().square()
    centred = squares - squares[:, drawn].mean(1, keepdim=True)
    between = -0.5 * (centred[:, drawn] - centred[:, drawn].mean(0))
    values, vectors = torch.linalg.eigh(between)
    values, vectors = values.flip(0)[:dims], vectors.flip(1)[:, :dims]
    scale = torch.where(values > 1e-6, values.clamp_min(1e-6).rsqrt(), 0)
    placed = -0.5 * centred.t() @ (vectors * scale)
    return torch.nn.functional.pad(placed, (0, dims - placed.size(1))).float()


def main_axes(rows: Tensor, dims: int) -> Tensor:
    """The directions in which rows vary most, ``[N, dims]``."""
    centred = (rows - rows.mean(0)).double()
    _, vectors = torch.linalg.eigh(centred.t() @ centred)
    placed = centred @ vectors.flip(1)[:, :dims]
    return torch.nn.functional.pad(placed, (0, dims - placed.size(1))).float()


def poincare(edges: csr_array) -> Tensor:
    """Places in the Poincaré disc, ``[N, 2]``, of Nickel and Kiela (2017).

    In every step each node draws one of its neighbours and ten other nodes, of which
    the neighbour should be the nearest: Riemannian descent on ``-log softmax(-d)``.
    """
    draw = torch.Generator().manual_seed(0)
    num_nodes = edges.shape[0]
    start, sources = (torch.from_numpy(a).long() for a in (edges.indptr, edges.indices))
    linked = start.diff().nonzero()[:, 0]
    place = (torch.rand(num_nodes, 2, generator=draw) - 0.5) * 2e-3
    shape = (linked.numel(), _NEGATIVES)
    for _ in range(_POINCARE_STEPS if linked.numel() else 0):
        at = torch.rand(linked.numel(), generator=draw) * start.diff()[linked]
        near = sources[start[linked] + at.long()]
        others = torch.randint(num_nodes, shape, generator=draw)
        with torch.enable_grad():  # the caller may want none
            place = place.detach().requires_grad_()
            asked = place[torch.cat([near[:, None], others], dim=1)]
            scores = -hyperbolic_distance(place[linked][:, None], asked)
            loss = -scores.log_softmax(1)[:, 0].sum()
        (gradient,) = torch.autograd.grad(loss, place)
        place = place.detach()
        metric = (1 - place.square().sum(1, keepdim=True)).square() / 4
        place = place - _POINCARE_RATE * metric * gradient
        length = place.norm(dim=1, keepdim=True)
        place = torch.where(length > _INSIDE, place * (_INSIDE / length), place)
    return place


def hyperbolic_distance(a: Tensor, b: Tensor) -> Tensor:
    """Distance in the Poincaré disc, along the last dimension."""
    rims = (1 - a.square().sum(-1)) * (1 - b.square().sum(-1))
    ratio = 1 + 2 * (a - b).square().sum(-1) / rims
    return torch.acosh(ratio.clamp_min(1 + 1e-7))


def euclidean_distance(a: Tensor, b: Tensor) -> Tensor:
    """The usual distance, along the last dimension."""
    return (a - b).square().sum(-1).sqrt()
