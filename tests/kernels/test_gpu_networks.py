"""Whole networks on Triton's kernels against the plain-torch reference."""

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.config.classify_settings import BACKBONES, model_names
from ecg_gnn.kernels import engine, using_engine
from ecg_gnn.nn import (
    NetworkSpec,
    build_network,
    traits_of,
)
from toy_graphs import directed_edges, graph_input, random, undirected_edges

NUM_NODES, FEATURES, CLASSES = 9, 5, 3
MODELS = [(backbone, name) for backbone in BACKBONES for name in model_names(backbone)]


def loss_and_gradients(backbone, model, place, dtype, *, autocast=False):
    loops = traits_of(backbone, model).self_loops
    graphs = [
        graph_input(undirected_edges(NUM_NODES, 12), NUM_NODES, self_loops=loops),
        graph_input(directed_edges(NUM_NODES, 20, seed=1), NUM_NODES, drop_edge=0.4),
    ]
    torch.manual_seed(0)
    network = build_network(
        NetworkSpec(
            backbone=backbone,
            model=model,
            in_channels=FEATURES,
            hidden=24,
            num_classes=CLASSES,
            layers=1,
            num_graphs=2,
            dropout=0.3,
        )
    ).to(place, dtype)
    x = random(NUM_NODES, FEATURES).to(place, dtype)
    y = torch.arange(NUM_NODES, device=place) % CLASSES
    torch.manual_seed(1)
    with torch.autocast(place.type, torch.bfloat16, enabled=autocast):
        logits = network(x, [graph.to(place) for graph in graphs])
    loss = F.cross_entropy(logits.to(dtype), y)
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in network.named_parameters()}


@pytest.mark.parametrize(("backbone", "model"), MODELS)
def test_engines_give_the_same_loss_and_gradients(backbone, model, place):
    """With dropout and DropEdge: both draw the same masks."""
    assert engine.gpu_usable(torch.ones(1, 1, device=place))
    case = (backbone, model, place, torch.float64)
    loss, gradients = loss_and_gradients(*case)
    with using_engine("reference"):
        expected, exact = loss_and_gradients(*case)
    torch.testing.assert_close(loss, expected, atol=1e-6, rtol=0)
    assert any(gradient.abs().max() > 1e-3 for gradient in exact.values())
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, exact[name], atol=1e-6, rtol=0, msg=name)


@pytest.mark.parametrize(
    ("backbone", "model"), [("benchmark", "gt-sep"), ("tuned", "gat")]
)
def test_engines_agree_under_autocast(backbone, model, place):
    case = (backbone, model, place, torch.float32)
    loss, gradients = loss_and_gradients(*case, autocast=True)
    with using_engine("reference"):
        expected, exact = loss_and_gradients(*case)
    assert loss.item() == pytest.approx(expected.item(), abs=0.02)
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        scale = max(tensor.abs().max().item() for tensor in exact.values())
        torch.testing.assert_close(gradient, exact[name], atol=0.05 * scale, rtol=0.1)
