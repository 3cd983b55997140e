"""Arithmetic of matrix products, and torch's own setting afterwards."""

import pytest
import torch

from ecg_gnn.system.checks import InputError
from ecg_gnn.train import computing_in, default_precision
from ecg_gnn.train.loop import PRECISIONS

CPU = torch.device("cpu")


@pytest.fixture(params=["highest", "high", "medium"])
def setting(request):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_puts_the_setting_back(setting, precision):
    with computing_in(precision, CPU):
        assert torch.get_float32_matmul_precision() == "highest"
        assert torch.is_autocast_enabled("cpu") == (precision == "bf16")
    assert torch.get_float32_matmul_precision() == setting
    assert not torch.is_autocast_enabled("cpu")


def test_puts_the_setting_back_after_an_error(setting):
    with pytest.raises(RuntimeError, match="on purpose"), computing_in("bf16", CPU):
        raise RuntimeError("on purpose")
    assert torch.get_float32_matmul_precision() == setting
    assert not torch.is_autocast_enabled("cpu")


def test_bf16_is_autocast():
    x = torch.ones(4, 4)
    with computing_in("bf16", CPU):
        assert (x @ x).dtype == torch.bfloat16
    with computing_in("fp32", CPU):
        assert (x @ x).dtype == torch.float32


def test_tf32_is_for_gpus():
    with (
        pytest.raises(InputError, match=r"one of \['fp32', 'bf16'\] on 'cpu' \(got 't"),
        computing_in("tf32", CPU),
    ):
        pass


def test_tf32_on_a_gpu(device):
    if device.type == "cpu":
        pytest.skip("tf32 needs a GPU")
    with computing_in("tf32", device):
        assert torch.get_float32_matmul_precision() == "high"


def test_refuses_unknown():
    with (
        pytest.raises(InputError, match=r"'precision' must be one of .* \(got 'fp8'\)"),
        computing_in("fp8", CPU),
    ):
        pass


def test_default_fits_the_device(device):
    precision = default_precision(device)
    assert precision == ("tf32" if device.type == "cuda" else "fp32")
    assert precision in PRECISIONS
    with computing_in(precision, device):
        pass
