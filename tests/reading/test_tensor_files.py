"""Tensors of strangers: as they were saved, or one line, and never a pickle run."""

import io
import os
import pickle
import re

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from ecg_gnn.reading import check_pickle
from ecg_gnn.reading.tensor_files import dense_array, read_safetensors, read_torch
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
    torch.save(found, tmp_path / "a.pt")
    for again in (
        read_safetensors(tmp_path / "a.safetensors"),
        read_torch(tmp_path / "a.pt", "tensors", []),
    ):
        assert again.keys() == found.keys()
        assert all(torch.equal(again[name], found[name]) for name in found)


@FEW
@given(content=st.binary(max_size=200), size=st.integers(0, 2**64 - 1))
def test_random_bytes_are_refused(tmp_path, content, size):
    for start in (b"", size.to_bytes(8, "little")):
        for name, read in READERS.items():
            (tmp_path / name).write_bytes(start + content)
            with pytest.raises(InputError, match=f"{name}: must be"):
                read(tmp_path / name)


READERS = {
    "a.safetensors": read_safetensors,
    "a.pt": lambda path: read_torch(path, "tensors", []),
}


class Calls:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.mkdir, ("evil",), "posix.mkdir"),
        (eval, ("1",), "eval"),
        (bytearray, (10**12,), "bytearray"),
        (torch.Tensor, (10**6, 10**6), "torch.Tensor"),
        (torch.load, ("a.pt",), "torch.serialization.load"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_what_could_run_code_is_named(
    tmp_path, monkeypatch, function, arguments, name, protocol
):
    monkeypatch.chdir(tmp_path)
    value = {"x": torch.zeros(2), "y": [Calls(function, *arguments)]}
    torch.save(value, "a.pt", pickle_protocol=protocol)
    said = re.escape(name) if protocol == 2 else "put together while loading"
    with pytest.raises(InputError, match=rf"got .*{said}, which is never loaded"):
        read_torch(tmp_path / "a.pt", "tensors", [])
    assert not (tmp_path / "evil").exists()


def test_classes_that_are_allowed(tmp_path):
    torch.save(
        {"x": torch.nn.Parameter(torch.ones(2)), "s": torch.Size([1])},
        tmp_path / "a.pt",
    )
    found = read_torch(tmp_path / "a.pt", "tensors", [])
    assert found["x"].tolist() == [1, 1]
    torch.save(torch.nn.Identity(), tmp_path / "b.pt")
    with pytest.raises(InputError, match=r"torch\.nn\.modules\.linear\.Identity"):
        read_torch(tmp_path / "b.pt", "tensors", [])


def test_the_limit_is_known_before_torch_reads(tmp_path, monkeypatch):
    torch.save({"x": torch.zeros(1000, 100)}, tmp_path / "a.pt")

    def load(*arguments, **options):
        pytest.fail("memory was taken")

    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(InputError, match="at most 49999 cells"):
        read_torch(tmp_path / "a.pt", "tensors", [], most=49_999)


def test_changed_bytes_are_noticed(tmp_path):
    buffer = io.BytesIO()
    torch.save({"x": torch.full((100,), 3.0)}, buffer)
    content = buffer.getvalue()
    changed = content.replace(b"\x00\x00\x40\x40" * 5, b"\x00\x00\x40\x41" * 5, 1)
    assert changed != content
    (tmp_path / "a.pt").write_bytes(changed)
    with pytest.raises(InputError, match="must be as it was saved"):
        read_torch(tmp_path / "a.pt", "tensors", [])


def test_members_that_claim_to_be_folders(tmp_path):
    """One bit, which makes torch give whatever is in memory."""
    path = tmp_path / "a.pt"
    torch.save({"x": torch.full((100,), 3.0)}, path)
    content = bytearray(path.read_bytes())
    name = content.rindex(b"a/data/0")
    content[name - 8] |= 0x10
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"'a/data/0' must be a file \(got a folder\)"):
        read_torch(path, "tensors", [])


def test_tensors_that_only_look_small():
    one = torch.zeros(1)
    for giant in (
        one.expand(10**6, 10**6),
        torch.sparse_coo_tensor(
            torch.zeros(2, 1).long(), one, (10**6, 10**6), check_invariants=True
        ),
    ):
        with pytest.raises(InputError, match=r"t: must have at most 500000000 cells"):
            dense_array("t", giant)
    with pytest.raises(InputError, match="t: must be a tensor of plain numbers"):
        dense_array("t", torch.empty(3, device="meta"))
    assert dense_array("t", torch.ones(2, dtype=torch.bfloat16)).tolist() == [1, 1]


def test_pickles_are_judged_by_what_they_name():
    harmless = re.compile(r"collections\.OrderedDict")
    check_pickle("p", pickle.dumps({"a": [1, 2.5, None]}), harmless)
    with pytest.raises(
        InputError, match=r"p: must hold plain values \(got posix\.mkdir"
    ):
        check_pickle("p", pickle.dumps(os.mkdir, protocol=2), harmless)
