"""Arrays from untrusted files: as they were saved, or a one-line refusal."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from ecg_gnn.reading import (
    check_cells,
    max_cells,
    read_archive,
    read_array_file,
)
from ecg_gnn.system.checks import InputError

FEW = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ARRAYS = arrays_of.arrays(
    st.sampled_from(["<f4", ">f8", "<i8", ">i2", "?", "<u4", "<U3", ">U5"]),
    arrays_of.array_shapes(max_dims=3, max_side=4, min_side=0),
)


def is_unicode(array):
    """Whether there are no half characters, which no file should have."""
    if array.dtype.kind != "U":
        return True
    try:
        "".join(array.ravel().tolist()).encode()
    except UnicodeEncodeError:
        return False
    return True


@FEW
@given(array=ARRAYS, packed=st.booleans())
def test_arrays_come_back(tmp_path, array, packed):
    save = np.savez_compressed if packed else np.savez
    save(tmp_path / "a.npz", a=array, b=array)
    np.save(tmp_path / "a.npy", array)
    if not is_unicode(array):
        with pytest.raises(InputError, match="must be texts in Unicode"):
            read_archive(tmp_path / "a.npz", ["a"])
        return
    found = read_archive(tmp_path / "a.npz", ["a", "none"])
    assert list(found) == ["a"]
    alone = read_array_file(tmp_path / "a.npy")
    for each in (found["a"], alone, read_archive(tmp_path / "a.npz", None)["b"]):
        assert each.dtype.isnative
        assert np.array_equal(each, array, equal_nan=array.dtype.kind == "f")


@FEW
@given(content=st.binary(max_size=300), start=st.sampled_from([b"", b"PK\x03\x04"]))
def test_random_bytes_are_refused(tmp_path, content, start):
    for name, read in {"a.npy": read_array_file, "a.npz": read_everything}.items():
        path = tmp_path / name
        path.write_bytes(start + content)
        with pytest.raises(InputError, match="must be a whole"):
            read(path)


def read_everything(path):
    return read_archive(path, None)


@FEW
@given(data=st.data())
def test_headers_at_random(tmp_path, data):
    """Whatever a header says, there is an array of that shape or one line."""
    shape = data.draw(st.lists(st.integers(-2, 2**65), max_size=4).map(tuple))
    kind = data.draw(st.sampled_from(["<f8", "|O", "<U9", "<M8[s]", "|S3", "x", "|V0"]))
    said = {"descr": kind, "fortran_order": data.draw(st.booleans()), "shape": shape}
    text = repr(said).encode() + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    (tmp_path / "a.npy").write_bytes(content + data.draw(st.binary(max_size=64)))
    try:
        found = read_array_file(tmp_path / "a.npy")
    except InputError:
        return
    assert found.shape == shape
    assert not found.dtype.hasobject


# --- Limits ---------------------------------------------------------------------------


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros((100, 10)))
    with pytest.raises(InputError, match=r"at most 999 cells.*\(got 100 × 10\)"):
        read_archive(tmp_path / "a.npz", ["a"], most=999)
    assert read_archive(tmp_path / "a.npz", ["a"], most=1000)["a"].shape == (100, 10)
    monkeypatch.setenv("ECG_MAX_CELLS", "999")
    with pytest.raises(InputError, match=r"at most 999 cells.*ECG_MAX_CELLS"):
        read_archive(tmp_path / "a.npz", ["a"])
    monkeypatch.setenv("ECG_MAX_CELLS", "1000")
    assert read_archive(tmp_path / "a.npz", ["a"])["a"].shape == (100, 10)


def test_what_the_limit_is(monkeypatch):
    monkeypatch.delenv("ECG_MAX_CELLS", raising=False)
    assert max_cells() == 500_000_000
    assert max_cells(7) == 7
    monkeypatch.setenv("ECG_MAX_CELLS", "many")
    with pytest.raises(InputError, match="ECG_MAX_CELLS must be a whole number"):
        max_cells()


def test_long_texts_are_many_cells():
    check_cells("t", [10], 10, itemsize=8)
    with pytest.raises(InputError, match="10, 80 bytes each"):
        check_cells("t", [10], 99, itemsize=80)
    check_cells("t", [10], 100, itemsize=80)


def test_only_what_is_asked_for_is_read(tmp_path):
    """A member that nobody wants may be anything, and may be called anything."""
    good = io.BytesIO()
    np.save(good, np.arange(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", good.getvalue())
        archive.writestr("../../b.npy", b"no array")
        archive.writestr("/etc/c", b"no array")
    assert read_archive(tmp_path / "a.npz", ["a", "b"])["a"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz"]


def test_names_are_checked_before_anything_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(2), b=np.array([None]))

    def refuse(names):
        assert names == {"a", "b"}
        raise InputError("not these")

    with pytest.raises(InputError, match="not these"):
        read_archive(tmp_path / "a.npz", ["a", "b"], refuse)


def test_members_that_a_damaged_byte_hides(tmp_path):
    """The length of a comment: it swallows the members after it."""
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(2), b=np.ones(2), c=np.ones(2))
    content = bytearray(path.read_bytes())
    first = content.index(b"PK\x01\x02")
    last = content.rindex(b"PK\x01\x02")
    content[first + 32 : first + 34] = (last - first - 51).to_bytes(2, "little")
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["a.npy", "c.npy"]
    with pytest.raises(InputError, match="must end with the table of its members"):
        read_archive(path, ["a", "b", "c"])
