"""GGCN against dense matrices, written as the authors' dense layer."""

import math

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.nn.specialised.gated_messages import Degrees
from specialised_nets import (
    CHANNELS,
    EDGES,
    FEATURES,
    NUM_NODES,
    build,
    graphs_for,
    linear,
    matrix,
)
from toy_graphs import random


def dense_layer(layer, h, a):
    """Every quantity over all pairs; A without self-loops."""
    eye = torch.eye(NUM_NODES, dtype=torch.float64)
    arriving, leaving = (a + eye).sum(1), (a + eye).sum(0)
    states = linear(layer.lin, h)
    cosine = F.cosine_similarity(states[:, None], states[None], dim=2)
    slope, intercept = layer.degree
    ratio = (leaving[None] / arriving[:, None]).sqrt() - 1
    corrected = a / (arriving[:, None] * leaving).sqrt()
    corrected = corrected * F.softplus(slope * ratio + intercept)
    alike, unlike, own = layer.mix.softmax(0)
    signed = alike * (corrected * cosine.relu()) @ states
    signed = signed - unlike * (corrected * (-cosine).relu()) @ states
    return F.softplus(layer.scale) * (signed + own * states)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("num_classes", [2, 3])
def test_matches_dense_layers(edges, num_classes):
    net = build("ggcn", num_classes, num_layers=4, decay=0.7, exponent=2.0)
    graphs = graphs_for("ggcn", EDGES[edges])
    a = matrix(graphs[0]).fill_diagonal_(0)
    x = random(NUM_NODES, FEATURES)
    total, state = F.elu(linear(net.input, x)), dense_layer(net.layers[0], x, a)
    for index, layer in enumerate(net.layers[1:]):
        share = 1 if index == 0 else math.log(0.7 / (index + 2) ** 2 + 1)
        total = total + share * F.elu(state)
        state = dense_layer(layer, total, a)
    if num_classes == 2:  # a column each, as the authors have it, then one logit
        assert state.size(1) == 2
        state = state[:, 1:] - state[:, :1]
    torch.testing.assert_close(net(x, graphs), state, atol=1e-10, rtol=1e-10)


def test_like_neighbours_attract_and_unlike_ones_push_away():
    layer = build("ggcn").layers[0]
    layer.lin.weight.data = torch.eye(CHANNELS, FEATURES, dtype=torch.float64)
    layer.lin.bias.data.zero_()
    edge = graphs_for("ggcn", torch.tensor([[0], [1]]))[0].adjacency
    degrees = Degrees.of(edge)
    x = torch.zeros(NUM_NODES, FEATURES, dtype=torch.float64)
    x[1, 0] = 1
    alone = layer(x, degrees)[1]
    for neighbour in (1.0, -1.0):  # from an unlike one it takes the opposite
        x[0, 0] = neighbour
        assert layer(x, degrees)[1, 0] > alone[0]
    x[0] = torch.tensor([0.0, 1, 0, 0, 0])  # at a right angle: no message
    assert torch.equal(layer(x, degrees)[1], alone)


def test_degrees_are_found_once():
    net, graphs = build("ggcn"), graphs_for("ggcn", EDGES["directed"])
    x = random(NUM_NODES, FEATURES)
    first = net._degrees(graphs[0].adjacency)
    net(x, graphs)
    assert net._degrees(graphs[0].adjacency) is first
