"""Which arithmetic matrix products use: fp32, tf32 or bf16."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from ecg_gnn.system.checks import InputError, check_choice

PRECISIONS = ("fp32", "tf32", "bf16")


def default_precision(device: torch.device) -> Literal["fp32", "tf32"]:
    """TF32 on GPUs, where plain fp32 leaves the tensor cores idle; else fp32."""
    return "tf32" if device.type == "cuda" else "fp32"


@contextmanager
def computing_in(precision: str, device: torch.device) -> Iterator[None]:
    """Use a precision inside the block, and put torch's setting back afterwards.

    ``bf16`` is autocast: weights, optimizer, norms and softmax stay in float32.
    """
    check_choice("precision", precision, PRECISIONS)
    if precision == "tf32" and device.type != "cuda":
        raise InputError(
            "'precision' must be one of ['fp32', 'bf16'] "
            f"on {device.type!r} (got 'tf32')"
        )
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        # Uncached: the block spans many steps, and the cache of cast weights lives as
        # long as the block, so every step would compute with the first step's weights.
        with torch.autocast(
            device.type,
            torch.bfloat16,
            enabled=precision == "bf16",
            cache_enabled=False,
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
