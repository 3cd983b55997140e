"""What the hardware allows: rates measured here and now, and the time they imply.

The floor of a step is the sum of its matrix products at the rate of a product of the
same shape, its compulsory passes over node states at the rate of a copy, and its reads
along edges at the rate of gathering whole rows. Rates count bytes read and written.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Passes over [N, d] and gathers over [E, d] per layer and graph, for one training step
# with its evaluation, everything that can be fused being fused.
_PASSES = {"gcn": 25.5, "sage": 29.5, "gat-sep": 40.0, "gt-sep": 59.0}
_GATHERS = {"gcn": 3, "sage": 3, "gat-sep": 3, "gt-sep": 7}
_CALLS = 30
# Forward, backward (twice the products of the forward pass) and evaluation.
_PRODUCTS = 4


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Measured in this process, on this device."""

    flops: float
    copy_bytes: float
    gather_bytes: float
    value_bytes: int
    """Of one value that is copied or gathered."""


def measure_rates(
    num_nodes: int, hidden: int, device: torch.device, precision: str = "fp32"
) -> Rates:
    """Rates at the shapes of one network; call where ``precision`` is in force."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    x = torch.randn(num_nodes, hidden, device=device).to(dtype)
    weight = torch.randn(hidden, hidden, device=device).to(dtype)
    out = torch.empty_like(x)
    size = x.numel() * x.element_size()
    # Rows are moved whole; as wider values, else a GPU would count them, not move them.
    table = x.view(torch.float32)
    index = torch.randint(num_nodes, (4 * num_nodes,), device=device)
    rows = table.new_empty(index.numel(), table.size(1))
    product = _seconds(lambda: torch.mm(x, weight, out=out), device)
    copy = _seconds(lambda: out.copy_(x), device)
    gather = _seconds(lambda: torch.index_select(table, 0, index, out=rows), device)
    return Rates(
        flops=2 * num_nodes * hidden**2 / product,
        copy_bytes=2 * size / copy,
        gather_bytes=2 * 4 * size / gather,
        value_bytes=x.element_size(),
    )


def step_floor(
    rates: Rates,
    network: nn.Module,
    model: str,
    hidden: int,
    num_layers: int,
    num_nodes: int,
    num_edges: list[int],
) -> float:
    """Seconds that a training step with its evaluation takes at the measured rates."""
    weights = sum(
        m.weight.numel() for m in network.modules() if isinstance(m, nn.Linear)
    )
    row = hidden * rates.value_bytes
    passes = _PASSES[model] * num_layers * len(num_edges) * num_nodes * row
    gathers = _GATHERS[model] * num_layers * sum(num_edges) * row
    return (
        _PRODUCTS * 2 * num_nodes * weights / rates.flops
        + passes / rates.copy_bytes
        + gathers / rates.gather_bytes
    )


def _seconds(work: Callable[[], Tensor], device: torch.device) -> float:
    """Median time of one call."""
    for _ in range(3):
        work()
    if device.type != "cuda":
        return statistics.median(timed(work, device) for _ in range(15))
    # Recorded, so that the host's asking for each call is not counted.
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_CALLS):
            work()
    times = [timed(graph.replay, device, 3) for _ in range(5)]
    return statistics.median(times) / _CALLS


def timed(work: Callable[[], object], device: torch.device, calls: int = 1) -> float:
    """Seconds of one of several calls in a row, the device's queue included."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    for _ in range(calls):
        work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - started) / calls
