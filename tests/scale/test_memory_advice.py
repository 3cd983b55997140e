"""What is said when memory runs out: what to lower, and by how much."""

import re

import pytest
import torch

from batch_trainings import MODELS, network_for, plain_task, training_of
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, NetworkSpec, build_network
from ecg_gnn.scale import Step, memory_advice, step_advice
from ecg_gnn.system.machine import explaining
from toy_graphs import directed_edges

NUM_NODES = 20_000


@pytest.fixture(scope="module")
def graphs():
    edges = [directed_edges(NUM_NODES, 200_000, seed=seed) for seed in (0, 1)]
    return [GraphInput(Adjacency.from_edge_index(each, NUM_NODES)) for each in edges]


@pytest.fixture
def free(monkeypatch):
    """Say how much memory there is."""

    def say(count):
        monkeypatch.setattr(memory_advice, "available_bytes", lambda _: count)

    return say


def batch_step(size):
    return Step(nodes=[100 * size, 10 * size, size], edges=200 * size, num_graphs=2)


def batch_advice(size):
    return step_advice(batch_step(size), network_for(plain_task()), size)


def test_names_what_was_needed_what_there_is_and_what_to_lower(free):
    needed = batch_step(100).bytes(network_for(plain_task()))
    free(needed // 3)
    message = re.fullmatch(
        r"a step of (\d+) nodes and (\d+) edges takes about (\d+) MiB, and (\d+) MiB "
        r"are left on cpu: lower --batch-size to (\d+) \(now 100\) or --fanout",
        batch_advice(100),
    )
    nodes, edges, takes, left, size = map(int, message.groups())
    assert (nodes, edges) == (10_000, 20_000)
    assert (takes, left) == (round(needed / 2**20), round(needed / 3 / 2**20))
    assert size == int(0.7 / 3 * 100)


def test_asks_for_half_where_the_estimate_saw_room(free):
    free(2**40)
    sentence = batch_advice(300)
    assert "1024.0 GiB are left" in sentence
    assert "lower --batch-size to 150 (now 300)" in sentence


def test_where_no_batch_is_small_enough_the_network_is(free):
    free(1000)
    assert batch_advice(300).endswith("lower --hidden to 8 (now 16)")


def full_advice(graphs, **options):
    network = network_for(plain_task(), **options)
    return step_advice(Step.of_graphs(graphs, 2), network)


def test_a_full_batch_is_told_to_be_cut(graphs, free):
    free(2**40)
    said = full_advice(graphs)
    assert said.endswith("train by batches (--batch-size 1024 --fanout 10, or less)")


def test_a_network_without_layers_is_told_to_be_narrower(graphs, free):
    free(2**40)
    sentence = full_advice(graphs, model="gpr-gnn")
    assert sentence.endswith("lower --hidden to 8 (now 16)")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError("x"), MemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError),
    ],
)
def test_running_out_of_memory_is_explained(error, kind, graphs):
    message = r"^a step of .* train by batches"
    with pytest.raises(kind, match=message), explaining(full_advice, graphs):
        raise error


def test_other_errors_are_left_alone(graphs):
    with (
        pytest.raises(RuntimeError, match=r"^shapes$"),
        explaining(full_advice, graphs),
    ):
        raise RuntimeError("shapes")


FEWER_NODES = 3000


def held_bytes(network, x, graphs):
    """What autograd holds for the backward pass, weights apart."""
    held = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = network(x, graphs)
    for parameter in network.parameters():
        held.pop(parameter.untyped_storage().data_ptr(), None)
    assert out.requires_grad
    return sum(held.values())


@pytest.mark.parametrize(("backbone", "model"), MODELS)
def test_the_estimate_is_of_the_right_order(backbone, model):
    edges = [directed_edges(FEWER_NODES, 20_000, seed=seed) for seed in (0, 1)]
    graphs = [
        GraphInput(Adjacency.from_edge_index(each, FEWER_NODES), 0.5) for each in edges
    ]
    network = build_network(
        NetworkSpec(
            backbone=backbone,
            model=model,
            in_channels=32,
            hidden=64,
            num_classes=5,
            layers=3,
            num_graphs=2,
            dropout=0.2,
            norm="layer",
        )
    ).train()
    held = held_bytes(network, torch.randn(FEWER_NODES, 32), graphs)
    estimate = Step.of_graphs(graphs, 3).bytes(network)
    # Beside what is held there are gradients and workspaces; tuned networks hold less.
    assert 0.9 * held < estimate < (8 if backbone == "tuned" else 4) * held


def test_a_batch_is_counted_layer_by_layer():
    training = training_of(plain_task())
    near = next(training._batches).near
    step = Step.of_batch(near)
    seeds, one, two = torch.tensor(near.nodes_per_hop).cumsum(0).tolist()
    assert step.nodes == [two, one, seeds]
    graphs = training._sampler.inputs_from(near, training.device)
    layers = [graph.at(layer).adjacency for graph in graphs for layer in range(2)]
    assert step.edges == sum(layer.num_edges for layer in layers)
