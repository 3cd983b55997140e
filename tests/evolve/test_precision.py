"""Float32 inside, the caller's settings outside."""

import pytest
import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.precision import full_precision


@pytest.fixture
def restore_precision():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("restore_precision")
@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_settings_come_back(precision, device):
    torch.set_float32_matmul_precision(precision)
    with full_precision(device):
        inside = torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)
    assert inside.dtype == torch.float32
    assert torch.get_float32_matmul_precision() == precision


@pytest.mark.usefixtures("restore_precision")
def test_reduced_precision_outside_changes_nothing(device):
    z = torch.randn(500, 32, generator=torch.Generator().manual_seed(0))
    want = knn_graph(z, 5)
    torch.set_float32_matmul_precision("medium")
    with torch.autocast(device.type, dtype=torch.bfloat16):
        got = knn_graph(z.to(device), 5)
    assert torch.equal(got.cpu(), want)
