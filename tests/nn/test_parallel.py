"""The ECG block: modules on several graphs, projected together."""

import pytest
import torch

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, NetworkSpec
from ecg_gnn.nn.benchmark_net import MODULES, BenchmarkNet
from ecg_gnn.nn.network import ParallelModules
from ecg_gnn.nn.tuned_net import TunedNet
from toy_graphs import dense, directed_edges, graph_input, random

NUM_NODES, CHANNELS = 17, 16


def block(name="gcn", num_graphs=2, dropout=0.0):
    torch.manual_seed(2)
    made = ParallelModules(
        CHANNELS, num_graphs, lambda: MODULES[name](CHANNELS, dropout)
    )
    return made.double()


def inputs(num_graphs=2, drop_edge=0.0):
    return [
        graph_input(directed_edges(seed=seed), drop_edge=drop_edge if seed else 0.0)
        for seed in range(num_graphs)
    ]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("num_graphs", [2, 3])
def test_is_a_sum_of_projected_branches(name, num_graphs):
    layer, graphs = block(name, num_graphs), inputs(num_graphs)
    x = random(NUM_NODES, CHANNELS)
    got = layer(x, graphs)
    # h = W h_INP + U h_ECG (+ ...): W and U are the column blocks of the projection.
    maps = layer.project.weight.split(CHANNELS, dim=1)
    expected = layer.project.bias + sum(
        branch(x, graph.adjacency) @ weight.t()
        for weight, branch, graph in zip(maps, layer.branches, graphs, strict=True)
    )
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=0)


def test_matches_a_formula_written_out():
    layer, graphs = block("gcn"), inputs()
    x = random(NUM_NODES, CHANNELS)
    total = layer.project.bias
    for index, branch in enumerate(layer.branches):
        matrix = dense(directed_edges(seed=index), NUM_NODES)
        scale_in = matrix.sum(1).clamp_min(1).rsqrt()
        scale_out = matrix.sum(0).clamp_min(1).rsqrt()
        message = (scale_in[:, None] * matrix * scale_out) @ x
        first, second = branch.feed_forward.first, branch.feed_forward.second
        state = second(torch.nn.functional.gelu(first(message)))
        columns = slice(index * CHANNELS, (index + 1) * CHANNELS)
        total = total + state @ layer.project.weight[:, columns].t()
    torch.testing.assert_close(layer(x, graphs), total, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", MODULES)
def test_one_graph_is_the_module_alone(name):
    layer, graphs = block(name, 1), inputs(1)
    assert layer.project is None
    x = random(NUM_NODES, CHANNELS)
    assert torch.equal(layer(x, graphs), layer.branches[0](x, graphs[0].adjacency))


def test_branches_have_weights_of_their_own():
    first, second = block("gcn").branches
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert a.data_ptr() != b.data_ptr()
        assert not torch.equal(a, b)


@pytest.mark.parametrize("name", [n for n in MODULES if MODULES[n].several_graphs])
def test_swapped_graphs_change_the_output(name):
    layer, graphs = block(name), inputs()
    x = random(NUM_NODES, CHANNELS)
    assert not torch.allclose(layer(x, graphs), layer(x, graphs[::-1]))


@pytest.mark.parametrize("num_graphs", [1, 2, 3])
def test_every_branch_has_gradient(num_graphs):
    layer, graphs = block("sage", num_graphs), inputs(num_graphs)
    layer(random(NUM_NODES, CHANNELS), graphs).square().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad.abs().max() > 0


def test_refuses_another_number_of_graphs():
    layer = block(num_graphs=2)
    with pytest.raises(ValueError, match=r"zip\(\) argument 2 is shorter"):
        layer(random(NUM_NODES, CHANNELS), inputs(1))


# --- DropEdge -------------------------------------------------------------------------


def test_sample_drops_in_training_only_and_at_a_rate_above_zero():
    adjacency = Adjacency.from_edge_index(directed_edges(), NUM_NODES)
    assert GraphInput(adjacency, 0.5).sample(training=False) is adjacency
    assert GraphInput(adjacency).sample(training=True) is adjacency
    dropped = GraphInput(adjacency, 0.5).sample(training=True)
    assert dropped.kept is not None
    assert 0 < int(dropped.kept.sum()) < adjacency.num_edges
    assert adjacency.kept is None


def test_drop_edge_is_fresh_in_training_and_absent_in_evaluation():
    layer, graphs = block(), inputs(drop_edge=0.5)
    x = random(NUM_NODES, CHANNELS)
    torch.manual_seed(0)
    first = layer(x, graphs)
    assert not torch.equal(first, layer(x, graphs))
    torch.manual_seed(0)
    assert torch.equal(first, layer(x, graphs))
    layer.eval()
    assert torch.equal(layer(x, graphs), layer(x, graphs))
    assert torch.equal(layer(x, graphs), layer(x, inputs()))


def test_drop_edge_takes_from_its_own_graph_only():
    layer, graphs = block(), inputs(drop_edge=1.0)
    x = random(NUM_NODES, CHANNELS)
    first, second = (
        layer.branches[0](x, graphs[0].adjacency),  # whole
        layer.branches[1](x, graphs[1].adjacency.drop_edges(1.0)),  # nothing left
    )
    expected = layer.project(torch.cat([first, second], dim=-1))
    torch.testing.assert_close(layer(x, graphs), expected)


@pytest.mark.parametrize("network", ["benchmark", "tuned"])
def test_drop_edge_is_fresh_in_every_layer(network, monkeypatch):
    seen = []
    sample = GraphInput.sample

    def spy(graph, training):
        adjacency = sample(graph, training)
        seen.append((graph.drop_edge, adjacency.kept))
        return adjacency

    monkeypatch.setattr(GraphInput, "sample", spy)
    kind = BenchmarkNet if network == "benchmark" else TunedNet
    sizes = {"in_channels": CHANNELS, "hidden": CHANNELS, "num_classes": 3}
    net = kind(NetworkSpec(model="gcn", **sizes, layers=3, num_graphs=2))
    x = random(NUM_NODES, CHANNELS, dtype=torch.float32)
    torch.manual_seed(0)
    net(x, inputs(drop_edge=0.5))
    net(x, inputs(drop_edge=0.5))
    assert all((kept is None) == (rate == 0) for rate, kept in seen)
    kept = [tuple(kept.tolist()) for rate, kept in seen if rate > 0]
    assert len(kept) == len(set(kept)) == 6  # 3 layers, 2 calls
    seen.clear()
    net.eval()(x, inputs(drop_edge=0.5))
    assert [kept for _, kept in seen] == [None] * 6
