"""GloGNN's closed form: it minimises the objective, and Z is never needed."""

import pytest
import torch

from ecg_gnn.nn.specialised.base import with_self_loops
from ecg_gnn.nn.specialised.node_rows import positive_inverse
from ecg_gnn.system.checks import InputError
from specialised_nets import (
    EDGES,
    FEATURES,
    NUM_NODES,
    assert_close,
    build,
    graphs_for,
    linear,
    matrix,
    random_walk,
)
from toy_graphs import random

SETTINGS = {"gamma": 0.3, "beta1": 0.7, "beta2": 1.4, "hops": 3, "delta": 0.4}


def hops(net, graph):
    step = random_walk(matrix(graph).fill_diagonal_(1))
    powers = [torch.linalg.matrix_power(step, k) for k in (1, 2, 3)]
    return sum(w * p for w, p in zip(net.hop_weights, powers, strict=True)).detach()


def objective(z, h, first, s):
    rest = h - 0.7 * z @ h - 0.3 * first
    return rest.square().sum() + 0.7 * z.square().sum() + 1.4 * (z - s).square().sum()


def best_z(h, first, s):
    """From the gradient set to zero, with the N x N matrices the model avoids."""
    left = 0.7 * (h - 0.3 * first) @ h.t() + 1.4 * s
    return left @ torch.linalg.inv(0.49 * h @ h.t() + 2.1 * torch.eye(len(h)).double())


@pytest.mark.parametrize("edges", EDGES)
def test_layers_are_those_of_the_best_coefficients(edges):
    net = build("glognn", num_layers=2, **SETTINGS)
    graphs = graphs_for("glognn", EDGES[edges])
    x = random(NUM_NODES, FEATURES)
    step = random_walk(matrix(graphs[0]).fill_diagonal_(1))
    of_edges = step @ net.edges.weight + net.edges.bias
    parts = 0.6 * of_edges + 0.4 * linear(net.nodes, x)
    first = state = linear(net.hidden, parts.relu())
    for _ in range(2):
        z = best_z(state, first, hops(net, graphs[0]))
        state = 0.7 * z @ state + 0.3 * first
    assert_close(net.represent(x, graphs), state)


def test_closed_form_minimises_the_objective():
    net = build("glognn", **SETTINGS)
    graph = graphs_for("glognn", EDGES["directed"])[0]
    h, first, s = random(NUM_NODES, 3), random(NUM_NODES, 3, seed=2), hops(net, graph)
    z = best_z(h, first, s).requires_grad_()
    (gradient,) = torch.autograd.grad(objective(z, h, first, s), z)
    assert gradient.abs().max() < 1e-10
    lowest = objective(z, h, first, s)
    for seed in range(5):
        moved = z + 0.01 * random(NUM_NODES, NUM_NODES, seed=seed)
        assert objective(moved, h, first, s) > lowest
    got = net.layer(h, first, with_self_loops(graph.adjacency))
    assert_close(got, (0.7 * z @ h + 0.3 * first).detach())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 18])
def test_inverse_of_positive_matrices(size):
    root = random(size, size + 2)
    matrix = root @ root.t() + 0.1 * torch.eye(size)
    assert_close(positive_inverse(matrix) @ matrix, torch.eye(size).double())


def test_one_of_the_two_weights_may_be_zero():
    graphs = graphs_for("glognn", EDGES["directed"])
    x = random(NUM_NODES, FEATURES)
    for zero in ("beta1", "beta2"):
        net = build("glognn", **SETTINGS | {zero: 0.0})
        assert net(x, graphs).isfinite().all()
    with pytest.raises(InputError, match=r"0.001 or more together.*\(got 0.0 and 0.0"):
        build("glognn", beta1=0.0, beta2=0.0)
