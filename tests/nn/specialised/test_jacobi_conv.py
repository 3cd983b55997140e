"""JacobiConv: its polynomials, Jacobi's where a = b, are applied to the graph."""

import numpy as np
import pytest
import torch
from scipy.special import eval_jacobi, roots_jacobi

from ecg_gnn.nn.specialised.hop_filters import recurrence
from specialised_nets import (
    EDGES,
    FEATURES,
    NUM_NODES,
    assert_close,
    build,
    graphs_for,
    linear,
    matrix,
    symmetric,
)
from toy_graphs import make_network, make_task, random

EXPONENTS = [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (-0.5, -0.5)]


def polynomials(a, b, degree, z):
    found = [np.zeros_like(z), np.ones_like(z)]
    for slope, shift, back in recurrence(a, b, degree):
        now = (slope * z + shift) * found[-1] - back * found[-2]
        found.append(now)
    return np.stack(found[1:])


@pytest.mark.parametrize(("a", "b"), EXPONENTS)
def test_are_jacobis(a, b):
    z = np.linspace(-1, 1, 41)
    expected = [eval_jacobi(k, a, b, z) for k in range(11)]
    np.testing.assert_allclose(polynomials(a, b, 10, z), expected, atol=1e-9)


@pytest.mark.parametrize(("a", "b"), EXPONENTS)
def test_are_orthogonal_under_their_weight(a, b):
    """Gauss quadrature with enough nodes integrates their products exactly."""
    nodes, weights = roots_jacobi(30, a, b)
    values = polynomials(a, b, 10, nodes)
    gram = (values * weights) @ values.T
    assert (np.diag(gram) > 0).all()
    scale = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    np.testing.assert_allclose(gram / scale, np.eye(11), atol=1e-9)


def released(a, b, degree, scale, eta, step, x):
    """The authors' recurrence in their own terms, with a dense matrix."""
    gamma = scale * torch.tanh(eta)
    found = [x, gamma[0] * ((a - b) / 2 * x + (a + b + 2) / 2 * (step @ x))]
    for n in range(2, degree + 1):
        below = 2 * n * (n + a + b) * (2 * n - 2 + a + b)
        first = (2 * n + a + b - 1) * (2 * n + a + b) * (2 * n + a + b - 2) / below
        second = (2 * n + a + b - 1) * (a**2 - b**2) / below
        third = 2 * (n - 1 + a) * (n - 1 + b) * (2 * n + a + b) / below
        now = gamma[n - 1] * (first * (step @ found[-1]) - second * found[-1])
        found.append(now - gamma[n - 1] * gamma[n - 2] * third * found[-2])
    return found


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.25), (1.0, 1.0), (2.0, -0.5)])
@pytest.mark.parametrize("num_classes", [2, 3])
def test_matches_the_authors_recurrence(edges, a, b, num_classes):
    net = build("jacobiconv", num_classes, num_layers=6, a=a, b=b, scale=1.5)
    graphs = graphs_for("jacobiconv", EDGES[edges])
    x = random(NUM_NODES, FEATURES)
    step, states = symmetric(matrix(graphs[0])), linear(net.input, x)
    found = released(a, b, 6, 1.5, net.factors, step, states)
    mixed = zip(net.mix.view(7, num_classes), found, strict=True)
    logits = sum(mix * each for mix, each in mixed)
    logits = logits[:, 1:] - logits[:, :1] if num_classes == 2 else logits
    assert_close(net(x, graphs), logits)


@pytest.mark.parametrize(("scale", "eta"), [(0.5, 1.0), (1.0, 1.0), (2.0, 0.5)])
def test_factors_start_where_the_authors_start(scale, eta):
    task = make_task()
    net = make_network(task, model="jacobiconv", options={"scale": scale})
    assert torch.equal(net.factors, torch.full_like(net.factors, eta))


def test_is_linear_in_the_features():
    net = build("jacobiconv")
    net.input.bias.data.zero_()
    graphs = graphs_for("jacobiconv", EDGES["directed"])
    one, two = random(NUM_NODES, FEATURES), random(NUM_NODES, FEATURES, seed=2)
    both = net(one, graphs) + 2 * net(two, graphs)
    assert_close(net(one + 2 * two, graphs), both)
