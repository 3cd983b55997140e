"""Graphs for the Triton kernels, dense float64 formulas, and how to compare."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F

from ecg_gnn.kernels import Adjacency
from ecg_gnn.kernels.gpu import launch
from toy_graphs import directed_edges, random

GRAPHS = (
    "directed",
    "empty",
    "one node",
    "one loop",
    "hub",
    "repeated",
    "dropped",
    "none left",
)


def make_graph(name):
    """A small graph on the CPU; the last node of all but the smallest is isolated."""
    edges, num_nodes = _edges(name)
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    if name == "dropped":
        generator = torch.Generator().manual_seed(4)
        kept = torch.rand(adjacency.num_edges, generator=generator) < 0.5
        kept[adjacency.target == 2] = False  # one node keeps nothing at all
        assert 0 < int(kept.sum()) < kept.numel()
        return replace(adjacency, kept=kept)
    if name == "none left":
        return replace(adjacency, kept=torch.zeros(adjacency.num_edges).bool())
    return adjacency


def _edges(name):
    directed = directed_edges(9, 30)
    if name == "empty":
        return torch.empty(2, 0).long(), 4
    if name in ("one node", "one loop"):
        return torch.zeros(2, name == "one loop").long(), 1
    if name == "hub":
        return hub_edges(9, 5), 9
    if name == "repeated":
        return torch.cat([directed, directed[:, ::3], directed[:, ::3]], dim=1), 9
    return directed, 9


def hub_edges(num_nodes, times):
    """Node 0 hears from all but the last node, and they from it, so many times.

    Its row is longer than a tile, and its last tile is not full.
    """
    spokes = torch.arange(1, num_nodes - 1).repeat(times)
    hub = torch.zeros_like(spokes)
    both = torch.stack([torch.cat([spokes, hub]), torch.cat([hub, spokes])])
    return torch.cat([both, directed_edges(num_nodes, num_nodes)], dim=1)


# --- Formulas -------------------------------------------------------------------------


def counts(adjacency):
    """``[u, v]``: how many kept edges v -> u there are."""
    size = (adjacency.num_nodes, adjacency.num_nodes)
    source, target = adjacency.edge_index()
    matrix = torch.zeros(size, dtype=torch.float64, device=adjacency.device)
    ones = torch.ones_like(source, dtype=torch.float64)
    return matrix.index_put_((target, source), ones, accumulate=True)


def dense_sum(adjacency, x):
    matrix = counts(adjacency)
    scale_in = matrix.sum(1).clamp_min(1).rsqrt()
    scale_out = matrix.sum(0).clamp_min(1).rsqrt()
    return (scale_in[:, None] * matrix * scale_out) @ x


def dense_mean(adjacency, x):
    matrix = counts(adjacency)
    return matrix @ x / matrix.sum(1, keepdim=True).clamp_min(1)


def dense_additive(adjacency, scores, values):
    source, target = scores.unbind(1)
    pairs = source.t()[:, None, :] + target.t()[:, :, None]
    weight = _softmax(F.leaky_relu(pairs, 0.2), counts(adjacency))
    return torch.einsum("huv,vch->uch", weight, values)


def dense_dot(adjacency, packed):
    query, key, values = packed.unbind(1)
    pairs = torch.einsum("uch,vch->huv", query, key) / math.sqrt(packed.size(2))
    weight = _softmax(pairs, counts(adjacency))
    return torch.einsum("huv,vch->uch", weight, values)


def _softmax(scores, matrix):
    """Row-wise over the edges of ``[H, N, N]``, repeated ones counted repeatedly."""
    scores = scores.masked_fill(matrix == 0, -math.inf)
    top = scores.amax(-1, keepdim=True).detach()
    weight = matrix * (scores - top.masked_fill(top.isinf(), 0.0)).exp()
    return weight / weight.sum(-1, keepdim=True).clamp_min(1.0)


def small_tiles(monkeypatch):
    """Tiles of a few edges or rows and two programs: small inputs need many rounds."""
    monkeypatch.setattr(launch, "_MAX_EDGES", 4)
    monkeypatch.setattr(launch, "_ROW_TILE", 64)
    for name in ("reductions", "norm", "pointwise"):
        monkeypatch.setattr(f"ecg_gnn.kernels.gpu.{name}.PROGRAMS", 2)


# --- Comparing ------------------------------------------------------------------------


def with_gradients(function, inputs):
    """The result, then the gradient of every input for a fixed gradient of it."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    out = function(*leaves)
    given = random(*out.shape, seed=99).to(out.device, out.dtype)
    out.backward(given)
    return [out.detach(), *(leaf.grad for leaf in leaves)]


def assert_matches(function, formula, inputs, place, dtype=torch.float64):
    """A kernel's result and gradients are those of a float64 formula, but for rounding.

    Args:
        function: The kernel.
        formula: The same in plain torch.
        inputs: In float64; both get what is left of them in ``dtype``.
        place: Where to compute.
        dtype: The kernel's.
    """
    given = [tensor.to(place, dtype) for tensor in inputs]
    got = with_gradients(function, given)
    expected = with_gradients(formula, [tensor.double() for tensor in given])
    assert [t.shape for t in got] == [t.shape for t in expected]
    assert all(tensor.dtype == dtype for tensor in got)
    for index, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        tolerance = FORWARD[dtype] if index == 0 else BACKWARD[dtype]
        torch.testing.assert_close(ours.double(), theirs, **tolerance)


# Degrees' roots and scalar arguments are float32, whatever the rows are. In bfloat16
# only the result is rounded, cut off by the interpreter; backward reads rounded ones.
FORWARD = {
    torch.float64: {"atol": 1e-6, "rtol": 0},
    torch.float32: {"atol": 5e-6, "rtol": 5e-6},
    torch.bfloat16: {"atol": 1e-6, "rtol": 2**-7},
}
BACKWARD = {
    torch.float64: {"atol": 1e-6, "rtol": 0},
    torch.float32: {"atol": 1e-5, "rtol": 1e-5},
    torch.bfloat16: {"atol": 2**-4, "rtol": 2**-6},
}
