"""What is said when memory runs out: what to lower, and how much a step takes."""

import pytest
import torch

from batch_trainings import MODELS
from ecg_gnn.config import RunConfig
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, NetworkSpec, build_network
from ecg_gnn.pipeline.classification import full_step_bytes, step_advice
from ecg_gnn.system import machine
from ecg_gnn.system.machine import explaining
from toy_graphs import directed_edges


def full_advice(**options):
    return step_advice(40, RunConfig.of(device="cpu", **options))


def test_a_full_batch_is_told_to_be_cut(monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda _: 2**40)
    assert full_advice() == (
        "a step of 40 nodes does not fit into the 1024.0 GiB that are left on cpu: "
        "train by batches (--batch-size 1024 --fanout 10, or less)"
    )


def test_a_network_without_layers_is_told_to_be_narrower():
    assert "lower --hidden (now" in full_advice(model="gpr-gnn")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError("x"), MemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError),
    ],
)
def test_running_out_of_memory_is_explained(error, kind):
    message = r"^a step of .* train by batches"
    with pytest.raises(kind, match=message), explaining(full_advice):
        raise error


def test_other_errors_are_left_alone():
    with pytest.raises(RuntimeError, match=r"^shapes$"), explaining(full_advice):
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
    edges = sum(graph.adjacency.num_edges for graph in graphs)
    estimate = full_step_bytes(FEWER_NODES, edges, layers=3, width=64, features=32)
    # Beside what is held there are gradients and workspaces; tuned networks hold less.
    assert 0.9 * held < estimate < (8 if backbone == "tuned" else 4) * held
