"""Tensors of strangers: as they were saved, or one line."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from ecg_gnn.reading.tensor_files import read_safetensors
from ecg_gnn.system.checks import InputError

FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
KINDS = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float16)


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    return torch.randn(shape).to(draw(st.sampled_from(KINDS)))


@FEW
@given(found=st.dictionaries(st.text("abc./", min_size=1), tensors(), max_size=3))
def test_tensors_come_back(tmp_path, found):
    save_file(found, tmp_path / "a.safetensors")
    again = read_safetensors(tmp_path / "a.safetensors")
    assert again.keys() == found.keys()
    assert all(torch.equal(again[name], found[name]) for name in found)


@FEW
@given(content=st.binary(max_size=200), size=st.integers(0, 2**64 - 1))
def test_random_bytes_are_refused(tmp_path, content, size):
    path = tmp_path / "a.safetensors"
    for start in (b"", size.to_bytes(8, "little")):
        path.write_bytes(start + content)
        with pytest.raises(InputError, match=r"must be a whole \.safetensors file"):
            read_safetensors(path)
