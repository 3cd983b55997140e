"""JacobiConv: the polynomials are Jacobi's, orthogonal, and applied to the graph."""

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
from toy_graphs import random

EXPONENTS = [(0.5, 0.25), (0.0, 0.0), (1.0, 1.0), (2.0, -0.5)]


def polynomials(a, b, degree, z):
    found = [np.zeros_like(z), np.ones_like(z)]
    for step in recurrence(a, b, degree):
        now = (step.slope * z + step.shift) * found[-1] - step.back * found[-2]
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


@pytest.mark.parametrize("edges", EDGES)
def test_matches_dense_polynomials_of_the_graph(edges):
    net = build("jacobiconv", num_layers=4, a=0.7, b=0.2, scale=1.5)
    graphs = graphs_for("jacobiconv", EDGES[edges])
    x = random(NUM_NODES, FEATURES)
    step, states = symmetric(matrix(graphs[0])), linear(net.input, x)
    # Textbook polynomials by their power series in the matrix.
    coefficients = np.polynomial.polynomial.polyfit(
        z := np.linspace(-1, 1, 30), polynomials(0.7, 0.2, 4, z).T, 4
    )
    gammas = 1.5 * net.factors.tanh()
    expected = 0
    for k, mix in enumerate(net.mix.view(5, 3)):
        series = sum(
            coefficients[power, k] * torch.linalg.matrix_power(step, power)
            for power in range(5)
        )
        expected = expected + mix * gammas[:k].prod() * (series @ states)
    assert_close(net(x, graphs), expected)


def test_is_linear_in_the_features():
    net = build("jacobiconv")
    net.input.bias.data.zero_()
    graphs = graphs_for("jacobiconv", EDGES["directed"])
    one, two = random(NUM_NODES, FEATURES), random(NUM_NODES, FEATURES, seed=2)
    both = net(one, graphs) + 2 * net(two, graphs)
    assert_close(net(one + 2 * two, graphs), both)
