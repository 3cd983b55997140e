"""Products of several inputs, and dropout after them, against torch's own."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import gradcheck

from ecg_gnn.kernels import dropout, joint_linear, linear_dropout, product, using_engine
from kernels.gpu_cases import with_gradients
from toy_graphs import random

ROWS, WIDTH, OUT = 9, 5, 7


@pytest.fixture(params=["fast", "reference"], autouse=True)
def engine(request, place):
    """Triton's column sums and plain torch's."""
    with using_engine(request.param):
        yield request.param


@pytest.fixture(params=[1, 2, 3])
def num_parts(request):
    return request.param


def inputs_of(num_parts, place, dtype=torch.float64):
    """Weight, bias and the parts."""
    tensors = [
        random(OUT, num_parts * WIDTH),
        random(OUT, seed=2),
        *(random(ROWS, WIDTH, seed=3 + part) for part in range(num_parts)),
    ]
    return [tensor.to(place, dtype) for tensor in tensors]


def joined(weight, bias, *parts):
    return torch.cat(parts, dim=1) @ weight.t() + bias


def ours(weight, bias, *parts):
    return product(parts, weight, bias)


def test_is_the_product_of_the_concatenation(num_parts, place):
    inputs = inputs_of(num_parts, place)
    got, expected = with_gradients(ours, inputs), with_gradients(joined, inputs)
    for one, two in zip(got, expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-12, rtol=0)


def test_gradcheck(num_parts, place):
    leaves = [tensor.requires_grad_() for tensor in inputs_of(num_parts, place)]
    assert gradcheck(ours, leaves)


def test_without_a_bias(num_parts, place):
    weight, _, *parts = inputs_of(num_parts, place)
    expected = with_gradients(lambda w, *p: joined(w, 0.0, *p), [weight, *parts])
    got = with_gradients(lambda w, *p: product(p, w, None), [weight, *parts])
    for one, two in zip(got, expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-12, rtol=0)


def test_parts_that_need_no_gradient_get_none(place):
    weight, bias, first, second = inputs_of(2, place)
    weight.requires_grad_()
    second.requires_grad_()
    product([first, second], weight, bias).square().sum().backward()
    assert first.grad is None
    assert bias.grad is None
    expected = joined(weight.detach(), bias, first, second.detach())
    torch.testing.assert_close(second.grad, 2 * expected @ weight[:, WIDTH:])


def test_one_part_twice(place):
    """As where a module reads its own state beside itself: gradients add up."""
    weight, bias, part = *inputs_of(2, place)[:2], random(ROWS, WIDTH).to(place)
    got = with_gradients(lambda p: product([p, p], weight, bias), [part])
    expected = with_gradients(lambda p: joined(weight, bias, p, p), [part])
    for one, two in zip(got, expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-12, rtol=0)


def test_another_number_of_parts_is_refused(place):
    weight, bias, *parts = inputs_of(3, place)
    with pytest.raises(ValueError, match=r"zip\(\) argument 2 is longer"):
        product(parts[:2], weight, bias)


def make_linear(num_parts, place, dtype):
    torch.manual_seed(0)
    return nn.Linear(num_parts * WIDTH, OUT).to(place, dtype)


def test_joint_linear(num_parts, place):
    linear = make_linear(num_parts, place, torch.float64)
    parts = inputs_of(num_parts, place)[2:]
    expected = linear(torch.cat(parts, dim=1))
    torch.testing.assert_close(joint_linear(parts, linear), expected)


def test_under_autocast_as_torch_does_it(num_parts, place):
    """Products in bfloat16; gradients of weights arrive in float32."""
    linear = make_linear(num_parts, place, torch.float32)
    parts = inputs_of(num_parts, place, torch.float32)[2:]
    found = []
    for function in (
        lambda: joint_linear(parts, linear),
        lambda: linear(torch.cat(parts, dim=1)),
    ):
        linear.zero_grad()
        for part in parts:
            part.requires_grad_().grad = None
        with torch.autocast(place.type, torch.bfloat16):
            out = function()
        assert out.dtype == torch.bfloat16
        out.float().square().sum().backward()
        leaves = [linear.weight, linear.bias, *parts]
        assert {leaf.grad.dtype for leaf in leaves} == {torch.float32}
        found.append([out.float(), *(leaf.grad.clone() for leaf in leaves)])
    for mine, theirs in zip(*found, strict=True):
        scale = theirs.abs().max().item()
        torch.testing.assert_close(mine, theirs, atol=2**-6 * scale, rtol=0)


@pytest.mark.parametrize("gelu", [True, False], ids=["gelu", "plain"])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_linear_dropout(num_parts, rate, gelu, place):
    linear = make_linear(num_parts, place, torch.float64)
    parts = inputs_of(num_parts, place)[2:]

    def expected(weight, bias, *parts):
        with using_engine("reference"):
            dropped = dropout(joined(weight, bias, *parts), rate)
        return F.gelu(dropped) if gelu else dropped

    def got(weight, bias, *parts):
        twin = SimpleNamespace(weight=weight, bias=bias)
        return linear_dropout(parts, twin, rate, gelu=gelu)

    inputs = [linear.weight, linear.bias, *parts]
    found = []
    for function in (got, expected):
        torch.manual_seed(8)
        found.append(with_gradients(function, inputs))
    assert (found[0][0] == 0).any() == (rate > 0)
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0)
