"""Arrays that stay in their files, and files that are not what they say."""

import os

import numpy as np
import pytest

from ecg_gnn.reading import MappedFile, map_array_file
from ecg_gnn.system.checks import InputError

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "x.npy", VALUES)
    return tmp_path / "x.npy"


def test_an_array_is_found_again(path):
    file = MappedFile.of("x", np.load(path, mmap_mode="r"))
    assert file.shape == (4, 3)
    assert np.array_equal(file.array(), VALUES)
    raw = np.memmap(path, np.float32, "r", offset=file.offset + 24, shape=(2, 3))
    assert np.array_equal(MappedFile.of("x", raw).array(), VALUES[2:])


def test_whoever_writes_to_it_does_not_write_to_the_file(path):
    file = MappedFile.of("x", map_array_file(path))
    array = file.array()
    array[:] = 0
    assert np.array_equal(np.load(path), VALUES)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, r"must be a whole \.npy file \(got"),
        (60, r"must be a whole \.npy file \(got"),
        (128, r"must be a whole \.npy file of 176 bytes, .* \(got 128\)"),
        (150, r"must be a whole \.npy file of 176 bytes, .* \(got 150\)"),
    ],
)
def test_a_file_that_is_cut_short(path, size, message):
    os.truncate(path, size)
    with pytest.raises(InputError, match=r"x\.npy: " + message):
        map_array_file(path)


def test_a_file_that_goes_on_after_its_end(path):
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(InputError, match=r"file of 176 bytes, .* \(got 180\)"):
        map_array_file(path)


def test_a_file_that_is_cut_short_later(path):
    file = MappedFile.of("x", map_array_file(path))
    os.truncate(path, 170)
    with pytest.raises(InputError, match=r"must have 176 bytes.* \(got 170: the file"):
        file.check()
    with pytest.raises(InputError, match=r"\(got 170: the file"):
        file.array()


@pytest.mark.parametrize(
    "array",
    [VALUES.astype(np.float64), np.asfortranarray(VALUES), VALUES.astype(">f4")],
)
def test_rows_that_cannot_be_read_in_place(tmp_path, array):
    np.save(tmp_path / "y.npy", array)
    with pytest.raises(InputError, match="y must be float32 in C order to stay in its"):
        MappedFile.of("y", map_array_file(tmp_path / "y.npy"))


def test_archives_and_pickles_are_not_mapped(tmp_path):
    np.savez(tmp_path / "a.npz", x=VALUES)
    with pytest.raises(InputError, match=r"must be an \.npy file \(got an archive\)"):
        map_array_file(tmp_path / "a.npz")
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match=r"o\.npy must be .*pickled Python objects"):
        map_array_file(tmp_path / "o.npy")
