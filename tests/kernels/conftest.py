"""Where the Triton kernels run in these tests."""

import numpy as np
import pytest
import torch

from ecg_gnn.kernels import current_engine, engine


@pytest.fixture
def place(monkeypatch):
    """A GPU, or the CPU with Triton's interpreter: the fast engine is Triton there."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if torch.cuda.is_available():
        yield torch.device("cuda")
        return
    monkeypatch.setattr(
        engine, "gpu_usable_on", lambda _device: current_engine() == "fast"
    )
    # Lanes without an edge may compute infinity: nobody reads it.
    with np.errstate(over="ignore"):
        yield torch.device("cpu")
