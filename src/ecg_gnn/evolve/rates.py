"""How fast exact searches are, so that what ``auto`` chooses depends on no clock.

A search among N rows of D numbers compares N x N pairs; a pair takes D multiplications
and a selection, which takes as long as so many multiplications again.
``benchmarks/scale/knn_rates.py`` measures all of it on the device at hand.
"""

from typing import NamedTuple


class Rate(NamedTuple):
    """How fast a search is, and how that is known.

    Attributes:
        value: Multiplications a second.
        selection: What selecting costs per pair, in multiplications.
        source: What was measured.
    """

    value: float
    selection: int
    source: str


IN_MEMORY = {
    "cpu": Rate(1.8e11, 150, "100,000 x 32 in 10 s on two cores"),
    "cuda": Rate(1.4e14, 60, "48,921 x 512 in 9.6 ms on an H200"),
}
STREAMED = {
    "cpu": Rate(6e10, 140, "50,000 x 512 in 27 s on two cores"),
    "cuda": Rate(2.1e12, 16, "50,000 x 128 in 0.17 s on an H200"),
}


def exact_seconds(num_nodes: int, dim: int, device: str, *, in_memory: bool) -> float:
    """How long an exact search takes, roughly, on two CPU cores or one H200."""
    rate = rate_of(device, in_memory=in_memory)
    return float(num_nodes) ** 2 * (dim + rate.selection) / rate.value


def rate_of(device: str, *, in_memory: bool) -> Rate:
    """What is reckoned with; devices that nobody measured are taken for CPUs."""
    rates = IN_MEMORY if in_memory else STREAMED
    return rates.get(device, rates["cpu"])
