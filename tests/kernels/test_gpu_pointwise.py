"""Triton's bias, dropout and GELU: the masks of plain torch, bit for bit."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from ecg_gnn.kernels import dropout, engine, using_engine
from ecg_gnn.kernels.dense import linear_dropout
from ecg_gnn.kernels.hashing import Draw, fresh_seed, hashes
from kernels.gpu_cases import assert_matches, small_tiles, with_gradients
from toy_graphs import random

SEEDS = [0, 1, -1, 2**31, 2**32, 2**63 - 1, -(2**63), 0x0123456789ABCDEF]


def as_seed(number, place):
    return torch.tensor([number], device=place)


def plain_mask(shape, draw):
    """Zero or the scale, as plain torch draws it; ones without a drawing."""
    if draw is None:
        return 1.0
    kept = hashes(torch.Size(shape).numel(), draw.seed) >= draw.threshold
    return kept.view(shape) * draw.scale


# --- Masks ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", SEEDS)
def test_masks_are_those_of_plain_torch(number, place):
    seed = as_seed(number, place)
    for rate in (1e-9, 0.2, 0.5, 0.8, 1 - 1e-9):
        draw = Draw.of(rate, seed)
        kept = engine.gpu_kernels().keep_mask(3000, draw)
        assert kept.dtype == torch.bool
        assert torch.equal(kept, hashes(3000, seed) >= draw.threshold)


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 2049])  # blocks have 2048 values
def test_masks_of_any_size(size, place):
    draw = Draw.of(0.5, as_seed(7, place))
    kept = engine.gpu_kernels().keep_mask(size, draw)
    assert torch.equal(kept, hashes(size, draw.seed) >= draw.threshold)


# --- Bias, dropout, GELU --------------------------------------------------------------


def check(shape, place, *, bias, rate, gelu, dtype=torch.float64):
    draw = Draw.of(rate, as_seed(-5, place)) if rate else None
    inputs = [2 * random(*shape), *([random(shape[1], seed=2)] if bias else [])]

    def kernel(x, bias=None):
        return engine.gpu_kernels().bias_dropout(x, bias, draw, gelu)

    def formula(x, bias=0.0):
        dropped = (x + bias) * plain_mask(shape, draw)
        return F.gelu(dropped) if gelu else dropped

    assert_matches(kernel, formula, inputs, place, dtype)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("gelu", [True, False], ids=["gelu", "plain"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_matches_formula(bias, rate, gelu, dtype, place):
    check((9, 12), place, bias=bias, rate=rate, gelu=gelu, dtype=dtype)


@pytest.mark.parametrize("shape", [(1, 1), (50, 1), (3, 33), (2, 3000)], ids=str)
def test_widths(shape, place):
    check(shape, place, bias=True, rate=0.3, gelu=True)


@pytest.mark.parametrize("rows", [0, 1, 33, 50])
def test_rows_that_fill_no_tile(rows, place, monkeypatch):
    """Also more tiles than programs: each program then takes several."""
    small_tiles(monkeypatch)
    check((rows, 12), place, bias=True, rate=0.3, gelu=True)


@pytest.mark.parametrize("gelu", [True, False], ids=["gelu", "plain"])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_gradcheck(gelu, rate, place):
    draw = Draw.of(rate, as_seed(3, place)) if rate else None
    leaves = [random(6, 5).to(place).requires_grad_(), random(5, seed=2).to(place)]
    leaves[1].requires_grad_()
    function = engine.gpu_kernels().bias_dropout
    assert gradcheck(lambda x, b: function(x, b, draw, gelu), leaves, fast_mode=True)


def test_low_values_beside_a_precise_bias(place):
    """bfloat16 values and a float32 bias, as under autocast."""
    draw = Draw.of(0.5, as_seed(3, place))
    x = random(40, 12).to(place, torch.bfloat16).requires_grad_()
    bias = random(12, seed=2).to(place, torch.float32).requires_grad_()
    out = engine.gpu_kernels().bias_dropout(x, bias, draw, True)
    given = random(40, 12, seed=3).to(place, torch.bfloat16)
    out.backward(given)
    exact, shift = (t.detach().double().requires_grad_() for t in (x, bias))
    expected = F.gelu((exact + shift) * plain_mask(x.shape, draw))
    expected.backward(given.double())
    assert (out.dtype, x.grad.dtype) == (torch.bfloat16, torch.bfloat16)
    assert bias.grad.dtype == torch.float32
    rounding = {"atol": 1e-6, "rtol": 2**-7}
    torch.testing.assert_close(out.double(), expected, **rounding)
    torch.testing.assert_close(x.grad.double(), exact.grad, **rounding)
    # Summed before anything is rounded.
    torch.testing.assert_close(bias.grad.double(), shift.grad, atol=1e-5, rtol=1e-5)


def test_gelu_of_far_values(place):
    """Where erf has run into its ends."""
    x = torch.tensor([[-50.0, -9.0, -5.0, 0.0, 5.0, 9.0, 50.0]], device=place)
    x.requires_grad_()
    out = engine.gpu_kernels().bias_dropout(x, None, None, True)
    out.sum().backward()
    expected = torch.tensor([[0.0, 0, -1.43e-6, 0, 5, 9, 50]], device=place)
    torch.testing.assert_close(out.detach(), expected, atol=1e-6, rtol=1e-6)
    slopes = torch.tensor([[0.0, 0, -7.15e-6, 0.5, 1, 1, 1]], device=place)
    torch.testing.assert_close(x.grad, slopes, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("gelu", [True, False], ids=["gelu", "plain"])
def test_strided_inputs_and_gradients(gelu, place):
    draw = Draw.of(0.5, as_seed(3, place))
    x, given = (random(7, 5, seed=s).to(place) for s in (1, 2))
    found = []
    for turn in (lambda t: t, lambda t: t.t().contiguous().t()):
        leaf = turn(x).detach().requires_grad_()
        out = engine.gpu_kernels().bias_dropout(leaf, None, draw, gelu)
        out.backward(turn(given))
        found.append((out, leaf.grad))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


def test_same_to_the_bit_every_time(place):
    draw = Draw.of(0.5, as_seed(3, place))
    inputs = [random(500, 24).to(place, torch.float32)]
    inputs.append(random(24, seed=2).to(place, torch.float32))
    first, second = (
        with_gradients(
            lambda x, b: engine.gpu_kernels().bias_dropout(x, b, draw, True),
            inputs,
        )
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_seeds_are_read_on_the_device(place):
    """A recorded step changes the seed in its place: the next call must see that."""
    draw = Draw.of(0.5, fresh_seed(place))
    x = torch.ones(20, 5, device=place)
    before = engine.gpu_kernels().bias_dropout(x, None, draw, False)
    draw.seed.add_(1)
    after = engine.gpu_kernels().bias_dropout(x, None, draw, False)
    assert not torch.equal(before, after)
    assert torch.equal(after, plain_mask(x.shape, draw).float())


# --- Both engines ---------------------------------------------------------------------


SHAPES = [(), (1,), (3,), (0, 4), (4, 0), (7, 5), (2, 3, 5), (5, 5000)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dropout_of_any_shape(shape, place):
    found = []
    for name in ("fast", "reference"):
        torch.manual_seed(3)
        x = torch.ones(shape, device=place, requires_grad=True)
        with using_engine(name):
            out = dropout(x, 0.25)
        out.sum().backward()
        found.append((out, x.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("rate", [0.0, 0.25])
@pytest.mark.parametrize("gelu", [True, False], ids=["gelu", "plain"])
def test_engines_draw_the_same(rate, gelu, place):
    found = []
    for name in ("fast", "reference"):
        torch.manual_seed(3)
        linear = torch.nn.Linear(7, 5).to(place)
        inputs = [random(50, 7).to(place, torch.float32)]
        with using_engine(name):
            found.append(
                with_gradients(
                    lambda x, to=linear: linear_dropout([x], to, rate, gelu=gelu),
                    inputs,
                )
            )
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_rate_one_drops_all(place):
    x, linear = random(9, 3).to(place).float(), torch.nn.Linear(3, 2).to(place)
    assert not dropout(x, 1.0).any()
    assert not linear_dropout([x], linear, 1.0, gelu=True).any()


# --- Column sums ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (50, 5), (300, 33), (3, 1500)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_column_sum(shape, dtype, place, monkeypatch):
    small_tiles(monkeypatch)
    x = random(*shape).to(place, dtype)
    total = engine.gpu_kernels().column_sum(x)
    assert total.dtype == dtype
    rounding = {"atol": 1e-6, "rtol": 2**-7} if dtype == torch.bfloat16 else {}
    expected = x.double().sum(0)
    torch.testing.assert_close(
        total.double(), expected, **{"atol": 1e-5, "rtol": 1e-5} | rounding
    )


def test_column_sum_of_strided_rows(place):
    x = random(5, 9).to(place)
    expected = x.sum(1)
    torch.testing.assert_close(engine.gpu_kernels().column_sum(x.t()), expected)
    torch.testing.assert_close(
        engine.gpu_kernels().column_sum(expected.expand(4, 5)), 4 * expected
    )
