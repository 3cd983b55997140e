import io
import pickle
import zipfile

import numpy as np
import pytest
import torch

from ecg_gnn.data import csbm, make_dataset, write_npz
from ecg_gnn.data.graph_storage import read_npz
from ecg_gnn.data.splits import stratified_splits
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file


def assert_same(a, b):
    for key in ("x", "y", "edge_index", "train_masks", "val_masks", "test_masks"):
        assert torch.equal(getattr(a, key), getattr(b, key)), key
    assert (a.num_classes, a.metric, a.directed) == (
        b.num_classes,
        b.metric,
        b.directed,
    )


def test_read_keeps_arrays_and_symmetrises(arrays, save):
    path = save(arrays)
    dataset = read_npz(path, "toy", note="n")
    assert dataset.x.tolist() == arrays["node_features"].tolist()
    assert dataset.test_masks.tolist() == arrays["test_masks"].tolist()
    pairs = {(u, v) for u, v in arrays["edges"].tolist() if u != v}
    pairs |= {(v, u) for u, v in pairs}
    assert [tuple(e) for e in dataset.edge_index.t().tolist()] == sorted(pairs)
    assert dataset.sha256 == sha256_of_file(path)
    assert (dataset.name, dataset.note) == ("toy", "n")


@pytest.mark.parametrize("directed", [False, True])
def test_round_trip(arrays, tmp_path, directed):
    dataset = make_dataset(
        name="toy",
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        directed=directed,
    )
    first, second = tmp_path / "a.npz", tmp_path / "deep" / "er" / "b"
    write_npz(dataset, first)
    write_npz(dataset, second)
    assert_same(read_npz(first, "toy"), dataset)
    assert first.read_bytes() == second.read_bytes()
    with np.load(first, allow_pickle=False) as file:
        assert len(file["edges"]) == dataset.num_edges
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "deep"]


def test_write_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        write_npz(csbm(nodes=20), tmp_path / "file" / "a.npz")


def test_without_masks_ten_splits_from_seed_zero(arrays, save):
    graph = {key: arrays[key] for key in ("node_features", "node_labels", "edges")}
    dataset = read_npz(save(graph), "toy")
    for got, expected in zip(
        (dataset.train_masks, dataset.val_masks, dataset.test_masks),
        stratified_splits(dataset.y, 10, 0),
        strict=True,
    ):
        assert torch.equal(got, expected)


def test_checksum_is_checked(arrays, save):
    path = save(arrays)
    digest = sha256_of_file(path)
    assert read_npz(path, "toy", expected_sha256=digest).sha256 == digest
    with pytest.raises(InputError, match=f"sha256 must be {'0' * 64} .got {digest}"):
        read_npz(path, "toy", expected_sha256="0" * 64)


def test_absent_file_and_folder(tmp_path):
    with pytest.raises(InputError, match=r"no\.npz: cannot be read \(No such file"):
        read_npz(tmp_path / "no.npz", "toy")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory"):
        read_npz(tmp_path, "toy")


@pytest.mark.parametrize(
    "content",
    [b"", b"not a zip", pickle.dumps({"edges": 1}), b"PK\x03\x04" + b"\0" * 40],
)
def test_not_an_npz(tmp_path, content):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.npz: must be a whole \.npz file"):
        read_npz(path, "toy")


def test_npy_is_not_npz(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(InputError, match=r"must be a whole \.npz file"):
        read_npz(tmp_path / "x.npy", "toy")


def test_objects_are_never_unpickled(arrays, save, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    arrays["node_labels"] = np.array([Bomb()] * 24, dtype=object)
    with pytest.raises(InputError, match=r"'node_labels'.*pickled Python objects"):
        read_npz(save(arrays), "toy")
    assert not (tmp_path / "exploded").exists()


def npy_header(shape, descr="<f4"):
    file = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((10**9, 10**6), r": must have at most 500000000 cells"),
        ((-1, -10), r" must not have a negative shape"),
        ((2, 2), r" must have the 16 bytes of its shape \[2, 2\] \(got 40"),
    ],
)
def test_header_that_lies_about_its_size(tmp_path, shape, reason):
    path = tmp_path / "lie.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("node_labels", "edges"):
            archive.writestr(f"{name}.npy", npy_header((1,)) + b"\0" * 4)
        archive.writestr("node_features.npy", npy_header(shape) + b"\0" * 40)
    with pytest.raises(InputError, match=f"'node_features'{reason}"):
        read_npz(path, "toy")


def test_archive_that_unpacks_to_more_than_possible(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("node_features.npy", b"\0" * 100_000)
    monkeypatch.setattr("ecg_gnn.reading.npy_files._MAX_DEFLATE_RATIO", 10)
    with pytest.raises(InputError, match=r"unpack to at most \d+ bytes.*100000"):
        read_npz(path, "toy")


def test_other_compression_is_refused(tmp_path):
    path = tmp_path / "bz.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("edges.npy", b"\0" * 100)
    with pytest.raises(InputError, match=r"'edges.npy' must be stored or deflated"):
        read_npz(path, "toy")


def test_every_truncation_is_one_line(arrays, save, tmp_path):
    whole = save(arrays).read_bytes()
    path = tmp_path / "cut.npz"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut\.npz: ") as caught:
            read_npz(path, "toy")
        assert "\n" not in str(caught.value)


def test_every_damaged_byte_is_refused_or_harmless(arrays, save, tmp_path):
    path = save(arrays)
    whole, original = path.read_bytes(), read_npz(path, "toy")
    damaged = tmp_path / "damaged.npz"
    messages = []
    for offset in range(len(whole)):
        content = bytearray(whole)
        content[offset] ^= 0xFF
        damaged.write_bytes(content)
        try:
            dataset = read_npz(damaged, "toy")
        except InputError as error:
            messages.append(str(error))
        else:  # a byte that means nothing, such as a date
            for part in ("x", "y", "edge_index", "train_masks", "test_masks"):
                assert torch.equal(getattr(dataset, part), getattr(original, part))
    assert len(messages) > len(whole) / 2
    assert not any("\n" in message for message in messages)
