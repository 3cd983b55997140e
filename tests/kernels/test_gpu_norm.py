"""Triton's residual sum and layer norm against float64 formulas."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import gradcheck

from ecg_gnn.kernels import add_norm, engine, using_engine
from kernels.gpu_cases import assert_matches, small_tiles
from toy_graphs import random

EPS = 1e-5
USES = {
    "both": lambda total, normed: torch.cat([total, normed], dim=1),
    "stream": lambda total, normed: total,
    "norm": lambda total, normed: normed,
}


def formula(x, update, weight, bias):
    total = x if update is None else x + update
    centred = total - total.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return total, centred / (variance + EPS).sqrt() * weight + bias


def inputs_of(rows, channels, *, update):
    return [
        random(rows, channels) + 1,
        *([random(rows, channels, seed=2)] if update else []),
        random(channels, seed=3),
        random(channels, seed=4),
    ]


def arranged(function, update):
    """Arguments with None where there is no update."""

    def call(x, *rest):
        return function(x, *rest) if update else function(x, None, *rest)

    return call


def ours(x, update, weight, bias):
    return engine.gpu_kernels().add_norm(x, update, weight, bias, EPS, x.dtype)


def check(rows, channels, update, used, place, dtype=torch.float64):
    inputs = inputs_of(rows, channels, update=update)
    take = USES[used]
    if used == "stream":  # weight and bias have no gradient then
        inputs = inputs[:-2]
        fixed = [random(channels, seed=s).to(place, dtype) for s in (3, 4)]
    else:
        fixed = []

    def kernel(*given):
        return take(*arranged(ours, update)(*given, *fixed))

    def exact(*given):
        both = [tensor.double() for tensor in fixed]
        return take(*arranged(formula, update)(*given, *both))

    assert_matches(kernel, exact, inputs, place, dtype)


@pytest.mark.parametrize("update", [True, False], ids=["update", "no update"])
@pytest.mark.parametrize("used", USES)
@pytest.mark.parametrize("channels", [1, 5, 64])
def test_matches_formula(update, used, channels, place):
    check(9, channels, update, used, place)


@pytest.mark.parametrize("update", [True, False], ids=["update", "no update"])
@pytest.mark.parametrize("rows", [1, 33, 50])
def test_rows_that_fill_no_tile(update, rows, place, monkeypatch):
    """Also more tiles than programs: each program then takes several."""
    small_tiles(monkeypatch)
    check(rows, 12, update, "both", place)


def test_no_rows(place):
    check(0, 5, True, "both", place)


@pytest.mark.parametrize("update", [True, False], ids=["update", "no update"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_other_types(update, dtype, place):
    check(40, 24, update, "norm", place, dtype)


@pytest.mark.parametrize("update", [True, False], ids=["update", "no update"])
def test_gradcheck(update, place):
    inputs = inputs_of(6, 5, update=update)
    leaves = [tensor.to(place).requires_grad_() for tensor in inputs]
    assert gradcheck(arranged(ours, update), leaves, fast_mode=True)


@pytest.mark.parametrize("update", [True, False], ids=["update", "no update"])
@pytest.mark.parametrize("used", USES)
def test_stream_keeps_its_precision_beside_a_low_norm(update, used, place):
    """float32 stream, bfloat16 update and norm: as under autocast."""
    x = (random(20, 12) + 1).to(place, torch.float32)
    change = random(20, 12, seed=2).to(place, torch.bfloat16) if update else None
    weight, bias = (random(12, seed=s).to(place, torch.float32) for s in (3, 4))
    given = [t for t in (x, change, weight, bias) if t is not None]
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    exact = [tensor.double().requires_grad_() for tensor in given]
    low = torch.bfloat16

    def kernel(x, update, weight, bias):
        return engine.gpu_kernels().add_norm(x, update, weight, bias, EPS, low)

    got = arranged(kernel, update)(*leaves)
    expected = arranged(formula, update)(*exact)
    assert [t.dtype for t in got] == [torch.float32, low]
    torch.testing.assert_close(got[0].double(), expected[0], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(got[1].double(), expected[1], atol=1e-6, rtol=2**-7)
    sides = {"both": (0, 1), "stream": (0,), "norm": (1,)}[used]
    gradients = [random(20, 12, seed=5 + i).to(place, got[i].dtype) for i in sides]
    torch.autograd.backward([got[i] for i in sides], gradients)
    doubles = [gradient.double() for gradient in gradients]
    torch.autograd.backward([expected[i] for i in sides], doubles)
    for leaf, theirs in zip(leaves, exact, strict=True):
        if theirs.grad is None:
            assert leaf.grad is None
            continue
        rounding = 2**-7 if leaf.dtype == low else 1e-5
        assert leaf.grad.dtype == leaf.dtype
        torch.testing.assert_close(
            leaf.grad.double(), theirs.grad, atol=1e-5, rtol=rounding
        )


def test_only_the_stream_is_used(place):
    """No gradient reaches the norm's weights then, rather than a wrong one."""
    x, change, weight, bias = (t.to(place) for t in inputs_of(6, 5, update=True))
    leaves = [t.requires_grad_() for t in (x, change, weight, bias)]
    total, _ = ours(*leaves)
    total.backward(torch.ones_like(total))
    assert torch.equal(x.grad, torch.ones_like(x))
    assert torch.equal(change.grad, torch.ones_like(x))
    assert weight.grad is None
    assert bias.grad is None


def test_a_stream_that_is_returned_can_be_used_again(place):
    """Without an update the stream comes back as it was, not as an aliased copy."""
    x, weight, bias = (t.to(place) for t in inputs_of(6, 5, update=False))
    leaf = x.clone().requires_grad_()
    total, normed = ours(leaf * 1, None, weight, bias)
    (total + 2 * normed + total).backward(torch.ones_like(x))
    exact = x.clone().requires_grad_()
    total, normed = formula(exact, None, weight, bias)
    (2 * total + 2 * normed).backward(torch.ones_like(x))
    torch.testing.assert_close(leaf.grad, exact.grad, atol=1e-6, rtol=0)


def test_strided_inputs_and_gradients(place):
    x, change, weight, bias = (t.to(place) for t in inputs_of(7, 5, update=True))
    given = random(7, 5, seed=8).to(place)
    found = []
    for turn in (lambda t: t, lambda t: t.t().contiguous().t()):
        leaves = [turn(t).detach().requires_grad_() for t in (x, change)]
        total, normed = ours(*leaves, weight, bias)
        torch.autograd.backward([total, normed], [turn(given), turn(given)])
        found.append([total, normed, *(leaf.grad for leaf in leaves)])
    for plain, strided in zip(*found, strict=True):
        assert torch.equal(plain, strided)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("update", [True, False], ids=["update", "no update"])
def test_engines_agree(autocast, update, place):
    torch.manual_seed(0)
    norm = nn.LayerNorm(12, eps=1e-3).to(place)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = random(20, 12).to(place, torch.float32)
    change = random(20, 12, seed=2).to(place, torch.float32) if update else None
    found = []
    for name in ("fast", "reference"):
        norm.zero_grad()
        leaf = x.clone().requires_grad_()
        with (
            using_engine(name),
            torch.autocast(place.type, torch.bfloat16, enabled=autocast),
        ):
            total, normed = add_norm(leaf, change, norm)
        assert total.dtype == torch.float32
        assert normed.dtype == (torch.bfloat16 if autocast else torch.float32)
        (total.sum() + normed.float().square().sum()).backward()
        found.append([total, normed.float(), leaf.grad, norm.weight.grad.clone()])
    tolerance = {"atol": 2**-4, "rtol": 2**-6} if autocast else {"atol": 1e-4}
    for fast, reference in zip(*found, strict=True):
        torch.testing.assert_close(fast, reference, **{"rtol": 1e-5} | tolerance)


def test_same_to_the_bit_every_time(place):
    inputs = [t.to(place, torch.float32) for t in inputs_of(500, 24, update=True)]
    found = []
    for _ in range(2):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        total, normed = ours(*leaves)
        (total * normed).sum().backward()
        found.append([total, normed, *(leaf.grad for leaf in leaves)])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("channels", [512, 768, 4096])
def test_large_streams(channels, place):
    """More rows than one round of programs takes."""
    if place.type == "cpu":
        pytest.skip("too much for Triton's interpreter")
    x = random(30_000, channels).to(place, torch.float32)
    weight, bias = (random(channels, seed=s).to(place, torch.float32) for s in (3, 4))
    given = random(channels, seed=5).to(place, torch.float32)
    ours_leaf, their_leaf = (x.clone().requires_grad_() for _ in range(2))
    weights = [[t.clone().requires_grad_() for t in (weight, bias)] for _ in range(2)]
    normed = ours(ours_leaf, None, *weights[0])[1]
    expected = F.layer_norm(their_leaf, (channels,), *weights[1], EPS)
    for out in (normed, expected):
        (out * given).sum().backward()
    torch.testing.assert_close(normed, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours_leaf.grad, their_leaf.grad, atol=1e-5, rtol=1e-5)
    for one, two in zip(*weights, strict=True):
        # Sums of thirty thousand terms, in different orders.
        torch.testing.assert_close(one.grad, two.grad, atol=2e-2, rtol=1e-4)
