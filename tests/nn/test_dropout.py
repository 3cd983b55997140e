"""Dropout by random bits: rate, expectation, and what it leaves alone."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ecg_gnn.nn import Dropout

RATES = [0.1, 0.2, 0.5, 0.9, 1 / 3]


@pytest.mark.parametrize("rate", RATES)
def test_drops_at_the_rate_and_keeps_the_expectation(rate, device):
    torch.manual_seed(0)
    x = torch.ones(1000, 500, device=device)
    out = Dropout(rate)(x)
    # Five standard errors of half a million draws.
    error = 5 * (rate * (1 - rate) / x.numel()) ** 0.5
    assert abs((out == 0).double().mean().item() - rate) < error
    assert abs(out.double().mean().item() - 1) < error / (1 - rate)
    kept = out[out != 0]
    torch.testing.assert_close(
        kept, torch.full_like(kept, 1 / (1 - rate)), rtol=1e-3, atol=0
    )
    assert kept.unique().numel() == 1


def test_scale_is_that_of_the_rate_applied():
    # 0.3 of 2^32 values, rounded: the scale must be the inverse of just that share.
    torch.manual_seed(0)
    out = Dropout(0.3)(torch.ones(1000, dtype=torch.float64))
    assert out.max().item() == 2**32 / (2**32 - round(0.3 * 2**32))


def test_values_fall_independently_of_their_place():
    torch.manual_seed(0)
    dropped = Dropout(0.5)(torch.ones(4000, 8)) == 0
    columns = torch.corrcoef(dropped.t().double())
    assert (columns - torch.eye(8)).abs().max() < 0.1
    assert (dropped.double().mean(0) - 0.5).abs().max() < 0.05


@pytest.mark.parametrize("shape", [(), (1,), (3,), (7, 5), (2, 3, 5), (0, 4), (4, 0)])
def test_any_size(shape):
    torch.manual_seed(0)
    x = torch.ones(shape)
    out = Dropout(0.5)(x)
    assert out.shape == x.shape
    assert set(out.flatten().tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
def test_dtype_is_kept(dtype, device):
    torch.manual_seed(0)
    out = Dropout(0.5)(torch.ones(64, 3, dtype=dtype, device=device))
    assert out.dtype == dtype
    assert out.device.type == device.type
    assert out.unique().tolist() == [0, 2]


def test_transposed_input():
    x = torch.arange(1.0, 13).view(3, 4).t()
    torch.manual_seed(0)
    out = Dropout(0.5)(x)
    kept = out != 0
    assert torch.equal(out[kept], 2 * x[kept])


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (0.5, False)])
def test_identity(rate, training):
    layer = Dropout(rate).train(training)
    before = torch.get_rng_state()
    x = torch.ones(5)
    assert layer(x) is x
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("rate", [1.0, 1 - 1e-9])
def test_rate_one_drops_all(rate):
    assert not Dropout(rate)(torch.ones(9, 9)).any()


def test_tiny_rate_drops_nothing_and_scales_by_one():
    assert Dropout(1e-9)(torch.ones(999)).unique().tolist() == [1]


def test_seed_determines_the_mask():
    layer, x = Dropout(0.5), torch.ones(100, 7)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


def test_gradient_passes_where_values_do():
    torch.manual_seed(0)
    x = torch.ones(50, 3, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


@pytest.mark.parametrize("gelu", [True, False], ids=["gelu", "plain"])
@pytest.mark.parametrize("num_parts", [1, 2])
@pytest.mark.parametrize("training", [True, False])
def test_after_a_linear_map(gelu, num_parts, training):
    torch.manual_seed(0)
    linear, layer = nn.Linear(5 * num_parts, 40), Dropout(0.5).train(training)
    parts = [torch.randn(30, 5) for _ in range(num_parts)]
    torch.manual_seed(3)
    got = layer.after(linear, *parts, gelu=gelu)
    torch.manual_seed(3)
    expected = layer(linear(torch.cat(parts, dim=1)))
    if gelu:
        expected = F.gelu(expected)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)
    assert (got == 0).any() == training
