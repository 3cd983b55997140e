"""What a step needs, and what is said when there is not as much."""

import pytest
import torch

from batch_trainings import MODELS, network_for, plain_task, training_of
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, build_network
from ecg_gnn.scale import Advice, Step, explaining, room
from toy_graphs import directed_edges

NUM_NODES = 3000
CPU = torch.device("cpu")


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
    edges = [directed_edges(NUM_NODES, 20_000, seed=seed) for seed in (0, 1)]
    graphs = [
        GraphInput(Adjacency.from_edge_index(each, NUM_NODES), 0.5) for each in edges
    ]
    network = build_network(
        backbone=backbone,
        model=model,
        in_channels=32,
        hidden_channels=64,
        num_classes=5,
        num_layers=3,
        num_graphs=2,
        dropout=0.2,
        norm="layer",
    ).train()
    held = held_bytes(network, torch.randn(NUM_NODES, 32), graphs)
    estimate = Step.of_graphs(graphs, 3).bytes(network)
    # Beside what is held there are gradients and workspaces; tuned networks hold less.
    assert 0.9 * held < estimate < (8 if backbone == "tuned" else 4) * held


def test_a_batch_is_counted_layer_by_layer():
    training = training_of(plain_task())
    near = training._stream.next().near
    step = Step.of_batch(near)
    seeds, one, two = torch.tensor(near.nodes_per_hop).cumsum(0).tolist()
    assert step.nodes == [two, one, seeds]
    layers = [g.at(layer).adjacency for g in near.graphs() for layer in range(2)]
    assert step.edges == sum(layer.num_edges for layer in layers)


def advice(free, monkeypatch, **options):
    monkeypatch.setattr(room, "available_bytes", lambda _: free)
    step = Step(nodes=[100_000, 20_000, 1024], edges=500_000, num_graphs=2)
    network = network_for(plain_task())
    return Advice(step=step, network=network, device=CPU, **options)


def test_says_what_to_lower_and_by_how_much(monkeypatch):
    given = advice(2**26, monkeypatch, batch_size=1024, fanouts=(15, -1))
    needed = given.step.bytes(given.network) / 2**20
    assert 100 < needed < 250
    assert given.sentence() == (
        f"a step of 100000 nodes and 500000 edges takes about {needed:.0f} MiB, and "
        "64 MiB are left on cpu: lower --batch-size to 256 (now 1024) or --fanout to "
        "8,10 (now 15,-1)"
    )


def test_asks_for_half_where_the_estimate_saw_room(monkeypatch):
    given = advice(2**40, monkeypatch, batch_size=1000, fanouts=(9, 9))
    assert "--batch-size to 256 (now 1000)" in given.sentence()
    assert "1024.0 GiB are left" in given.sentence()


def test_a_full_batch_is_told_to_be_cut(monkeypatch):
    sentence = advice(2**26, monkeypatch).sentence()
    assert sentence.endswith("train by batches (--batch-size 64 --fanout 10)")


def test_a_network_without_layers_is_told_to_be_narrower(monkeypatch):
    given = advice(2**26, monkeypatch)
    whole = network_for(plain_task(), model="gpr-gnn")
    sentence = Advice(step=given.step, network=whole, device=CPU).sentence()
    assert sentence.endswith("lower --hidden to 8 (now 16)")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError("x"), MemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError),
    ],
)
def test_running_out_of_memory_is_explained(error, kind, monkeypatch):
    given = advice(2**26, monkeypatch)
    with (
        pytest.raises(kind, match=r"^a step of .* train by batches"),
        explaining(given),
    ):
        raise error


def test_other_errors_are_left_alone(monkeypatch):
    with (
        pytest.raises(RuntimeError, match=r"^shapes$"),
        explaining(advice(1, monkeypatch)),
    ):
        raise RuntimeError("shapes")
