"""All weights as one tensor: views that stay views, and values that move whole."""

import torch
from torch import nn

from ecg_gnn.train.state import Weights

ALIGNMENT = 64


def make_network(seed=0, dtype=torch.float32):
    """Odd sizes, a scalar, running statistics and a counter."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(5, 13), nn.BatchNorm1d(13), nn.PReLU())
    return network.append(nn.Linear(13, 3, bias=False)).to(dtype)


def values(network):
    return {name: t.detach().clone() for name, t in network.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def disturb(network, seed=9):
    """Other weights, statistics and counters, as training would leave them."""
    torch.manual_seed(seed)
    for parameter in network.parameters():
        parameter.data.normal_()
    network.train()(torch.randn(20, 5, dtype=next(network.parameters()).dtype))


def test_nothing_changes_but_the_place(device):
    network = make_network().to(device)
    before, parameters = values(network), [*network.parameters()]
    weights = Weights.of(network)
    assert same(values(network), before)
    assert same(weights.named, before)
    after = [*network.parameters()]
    assert all(a is b for a, b in zip(parameters, after, strict=True))
    assert all(p.requires_grad and p.is_leaf for p in after)


def test_views_are_aligned_and_apart():
    network = make_network()
    weights = Weights.of(network)
    state = network.state_dict(keep_vars=True)
    ends = [0]
    views = {n: t for n, t in weights.named.items() if n not in weights.buffers}
    for name, view in sorted(views.items(), key=lambda v: v[1].storage_offset()):
        assert view.untyped_storage().data_ptr() == weights.flat.data_ptr()
        assert view.data_ptr() == state[name].data_ptr()
        assert view.is_contiguous()
        assert view.storage_offset() % ALIGNMENT == 0
        assert view.storage_offset() >= ends[-1]
        ends.append(view.storage_offset() + view.numel())
    assert ends[-1] <= weights.flat.numel()
    named = sum(view.numel() for view in weights.named.values())
    counters = sum(view.numel() for view in weights.buffers.values())
    assert weights.flat.count_nonzero() <= named - counters  # the gaps are zero


def test_buffers_lie_beside():
    network = make_network(dtype=torch.float64)
    weights = Weights.of(network)
    names = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert set(weights.buffers) == names
    kept = weights.buffers["1.running_mean"]
    assert kept.data_ptr() == network[1].running_mean.data_ptr()


def test_flat_tensor_and_network_are_one():
    network = make_network()
    weights = Weights.of(network)
    weights.flat.data.fill_(2.0)
    assert all((p == 2).all() for p in network.parameters())
    disturb(network)
    assert same(weights.named, values(network))
    assert weights.buffers["1.num_batches_tracked"] == 1


def test_training_the_flat_tensor_trains_the_network():
    """As if every weight had been trained alone, to the bit."""
    network, twin = make_network(), make_network()
    weights, x = Weights.of(network), torch.ones(4, 5) * torch.arange(4)[:, None]
    ours = torch.optim.AdamW([weights.flat], lr=0.1)
    theirs = torch.optim.AdamW(twin.parameters(), lr=0.1)
    for _ in range(3):
        for optimizer, out in ((ours, weights.call(network, x)), (theirs, twin(x))):
            optimizer.zero_grad(set_to_none=True)
            out.sum().backward()
            optimizer.step()
    assert same(weights.named, values(network))
    assert same(values(network), values(twin))


def test_matrices_alone_are_called_in_a_lower_precision():
    network = nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 3))
    weights, seen = Weights.of(network), {}

    def look(module, *_):
        seen.update({name: p.dtype for name, p in module.named_parameters()})

    network[1].register_forward_hook(look)
    with torch.autocast("cpu", torch.bfloat16):
        weights.call(network, torch.randn(4, 5)).float().sum().backward()
    assert seen == {"weight": torch.bfloat16, "bias": torch.float32}
    assert weights.flat.grad.dtype == torch.float32
    assert weights.flat.grad.count_nonzero() > 15


def test_copy_has_a_place_of_its_own():
    network = make_network()
    weights = Weights.of(network)
    copy = weights.copy()
    before = values(network)
    assert same(copy.named, before)
    disturb(network)
    assert same(copy.named, before)
    assert not same(weights.named, before)
    copy.flat.fill_(3.0)  # its names are views of it, too
    floating = [t for name, t in copy.named.items() if name not in copy.buffers]
    assert all((tensor == 3).all() for tensor in floating)
    assert same(weights.named, values(network))


def test_take_if(device):
    network = make_network().to(device)
    weights = Weights.of(network)
    best, before = weights.copy(), values(network)
    torch.manual_seed(1)
    for parameter in network.parameters():
        parameter.data.normal_()
    network(torch.randn(20, 5, device=device))
    after = values(network)
    places = {name: tensor.data_ptr() for name, tensor in best.named.items()}
    best.take_if(torch.tensor(False, device=device), weights)
    assert same(best.named, before)
    best.take_if(torch.tensor(True, device=device), weights)
    assert same(best.named, after)
    assert best.buffers["1.num_batches_tracked"] == 1
    assert {name: t.data_ptr() for name, t in best.named.items()} == places
    assert same(values(network), after)


def test_what_is_not_taken_may_be_anything():
    network = make_network()
    weights = Weights.of(network)
    best, before = weights.copy(), values(network)
    weights.flat.data.fill_(torch.nan)
    best.take_if(torch.tensor(False), weights)
    assert same(best.named, before)


def test_network_loads_the_named_ones():
    network = make_network()
    weights = Weights.of(network)
    best, before = weights.copy(), values(network)
    disturb(network)
    network.load_state_dict(best.named)
    assert same(values(network), before)
    assert same(weights.named, before)
