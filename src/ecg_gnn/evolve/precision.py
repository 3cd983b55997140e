"""Float32 products that are float32, whatever the caller's settings allow."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """No TF32, bfloat16 or autocast inside; the caller's settings come back after.

    The error bound of the fast search holds for IEEE float32 only.
    """
    with torch.autocast(device.type, enabled=False):
        # The old and the new switch must not be mixed: PyTorch then refuses to answer.
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
            with _ieee_backends():
                yield
        else:
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")
            try:
                yield
            finally:
                torch.set_float32_matmul_precision(before)


@contextmanager
def _ieee_backends() -> Iterator[None]:
    backends: list[Any] = [
        torch.backends.cuda.matmul,
        torch.backends.mkldnn.matmul,  # type: ignore[attr-defined]  # made at run time
    ]
    before = [backend.fp32_precision for backend in backends]
    try:
        for backend in backends:
            backend.fp32_precision = "ieee"
        yield
    finally:
        for backend, precision in zip(backends, before, strict=True):
            backend.fp32_precision = precision
