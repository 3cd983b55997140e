"""JacobiConv: a linear model whose filter is a sum of Jacobi polynomials."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import normalized_sum
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import SpecialisedNet, Usual


class Step(NamedTuple):
    """``P_k(z) = (slope z + shift) P_(k-1)(z) - back P_(k-2)(z)``."""

    slope: float
    shift: float
    back: float


def recurrence(a: float, b: float, degree: int) -> Iterator[Step]:
    """The steps to the Jacobi polynomials from degree 1 to ``degree``."""
    if degree >= 1:
        yield Step((a + b + 2) / 2, (a - b) / 2, 0.0)
    s = a + b
    for k in range(2, degree + 1):
        twice = 2 * k + s
        yield Step(
            slope=twice * (twice - 1) / (2 * k * (k + s)),
            shift=(twice - 1) * (a**2 - b**2) / (2 * k * (k + s) * (twice - 2)),
            back=(k + a - 1) * (k + b - 1) * twice / (k * (k + s) * (twice - 2)),
        )


class JacobiConv(SpecialisedNet):
    """JacobiConv of Wang and Zhang (2022).

    ``X̂ = drop(W drop(X))`` with one column per logit, and
    ``Z[:, l] = sum_k beta_kl P_k(Ā) X̂[:, l]``, ``Ā = D^-1/2 A D^-1/2`` without added
    self-loops. P_k is the Jacobi polynomial of (a, b) with every factor of the
    recurrence scaled by a learned ``gamma_k = scale tanh(eta_k)``:
    ``P_k = gamma_k ((slope_k Ā + shift_k) P_(k-1) - gamma_(k-1) back_k P_(k-2))``, so
    P_k is the textbook polynomial times ``gamma_1 ... gamma_k``.

    There is no nonlinearity and no hidden layer: ``hidden_channels`` is not read. The
    representation is every ``P_k(Ā) X̂`` side by side; beta joins them.

    Args:
        spec: ``layers`` is the highest degree K; ``dropout`` is of features; options
            are ``a``, ``b``, ``scale``, ``late_dropout``.
    """

    label_input = True
    usual = Usual(layers=10)
    options: ClassVar[dict[str, Option]] = {
        "a": Option(0.5, "first exponent of the Jacobi weight", -0.9, 10),
        "b": Option(0.25, "second exponent of the Jacobi weight", -0.9, 10),
        "late_dropout": Option(0.1, "dropout after the linear map", 0, 0.99),
        "scale": Option(2.0, "largest factor gamma of a degree", 0.01, 10),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options = spec.options
        degree = spec.layers
        self.scale: float = options["scale"]
        self.steps = list(recurrence(options["a"], options["b"], degree))
        self.input = nn.Linear(spec.in_channels, spec.out_channels)
        self.factors = nn.Parameter(torch.full((degree,), 0.5))
        self.mix = nn.Parameter(torch.ones((degree + 1) * spec.out_channels))
        self.dropout = Dropout(spec.dropout)
        self.late_dropout = Dropout(options["late_dropout"])

    def polynomials(self, x: Tensor, graphs: Sequence[GraphInput]) -> list[Tensor]:
        """``P_0(Ā) x`` to ``P_K(Ā) x``."""
        adjacency = self.the_graph(graphs)
        gammas = self.scale * torch.tanh(self.factors)
        found = [torch.zeros_like(x), x]
        before = torch.zeros_like(gammas[:1])
        pairs = pairwise(torch.cat([before, gammas]).unbind())
        for step, (last, gamma) in zip(self.steps, pairs, strict=True):
            moved = normalized_sum(adjacency, found[-1])
            now = step.slope * moved + step.shift * found[-1]
            found.append(gamma * (now - last * step.back * found[-2]))
        return found[1:]

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Every polynomial's result. ``[N, F]`` to ``[N, (K + 1) C]``."""
        x = self.late_dropout(self.input(self.dropout(x)))
        return torch.cat(self.polynomials(x, graphs), dim=1)

    def classify(self, states: Tensor) -> Tensor:
        """The weighted sum of all polynomials, with weights per column."""
        degrees = len(self.steps) + 1
        return (states * self.mix).view(states.size(0), degrees, -1).sum(1)
