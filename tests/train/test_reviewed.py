"""What went wrong once: frozen weights, old checkpoints, streams in bf16, masks."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from ecg_gnn.kernels import StepSeeds
from ecg_gnn.kernels.hashing import hashes
from ecg_gnn.nn import benchmark_net
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import LoopSettings, Training, computing_in
from ecg_gnn.train.state import Weights
from toy_graphs import make_network, make_task, train


def test_frozen_weights_stay():
    task = make_task(3)
    network = make_network(task)
    network.output.weight.requires_grad_(False)
    before = network.output.weight.clone()
    train(network, task, LoopSettings(steps=5, lr=1e-2, weight_decay=0.1), seed=0)
    assert torch.equal(network.output.weight, before)
    assert not network.output.weight.requires_grad


def test_a_trained_network_is_saved_in_its_own_size(tmp_path):
    task = make_task(3)
    network = make_network(task)
    train(network, task, LoopSettings(steps=2), seed=0)
    for parameter in network.parameters():
        assert parameter.untyped_storage().nbytes() == 4 * parameter.numel()


@pytest.mark.parametrize("call", ["network", "weights"])
def test_the_stream_stays_in_float32_under_bf16(call, monkeypatch):
    task = make_task(3, evolved=True)
    network, seen = make_network(task, model="gcn"), []
    add_norm = benchmark_net.add_norm

    def spy(x, *rest):
        seen.append(x.dtype)
        return add_norm(x, *rest)

    monkeypatch.setattr(benchmark_net, "add_norm", spy)
    with computing_in("bf16", torch.device("cpu")):
        if call == "network":
            network(task.x, task.graphs)
        else:
            Weights.of(network).call(network, task.x, task.graphs)
    assert set(seen) == {torch.float32}


def test_a_checkpoint_of_another_format_costs_a_fresh_start(tmp_path):
    task, path = make_task(3), tmp_path / "checkpoint"
    config = LoopSettings(steps=4, lr=1e-2, checkpoint_seconds=0.0)
    begun = Training(make_network(task), task, config, seed=0, checkpoint=path)
    begun.step()
    begun.save_if_due(float("inf"))
    tensors = load_file(path)
    save_file(tensors, path, {"fingerprint": "0/…", "done": "1", "seconds": "0"})
    with pytest.warns(UserWarning, match="another training"):
        result = train(make_network(task), task, config, seed=0, checkpoint=path)
    assert result.losses == train(make_network(task), task, config, seed=0).losses


def test_neighbouring_seeds_do_not_share_their_masks():
    """A hash of place and seed alone would repeat itself one place further on."""

    def first_mask(seed):
        seeds = StepSeeds(derive_seed(seed, "steps"), torch.device("cpu"))
        with seeds.step():
            return hashes(1000, seeds.next())

    one, two = first_mask(0), first_mask(1)
    assert not torch.equal(one[1:], two[:-1])
    assert not torch.equal(two[1:], one[:-1])
