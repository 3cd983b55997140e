"""Embeddings from files: read safely, refused in one sentence."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ecg_gnn.embed import PrecomputedEmbedder, check_embedder, embed_nodes
from ecg_gnn.system.checks import InputError
from toy_graphs import labelled_graph, random


@pytest.fixture
def z():
    return random(40, 5, dtype=torch.float32)


def write(path, z):
    if path.suffix == ".npy":
        np.save(path, z.numpy())
    elif path.suffix == ".npz":
        np.savez(path, anything=z.numpy())
    else:
        save_file({"anything": z}, path)
    return path


@pytest.mark.parametrize("name", ["z.npy", "z.npz", "z.safetensors"])
@pytest.mark.parametrize("as_text", [True, False])
def test_files_are_read(tmp_path, z, name, as_text):
    path = write(tmp_path / name, z)
    embedder = PrecomputedEmbedder.from_file(str(path) if as_text else path)
    assert torch.equal(embedder.tensor, z)
    data, split = labelled_graph()
    assert torch.equal(embed_nodes(embedder, data, split, seed=0), z)
    check_embedder(embedder, data, split)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int8", "bool"])
def test_numbers_become_float32(tmp_path, z, dtype):
    path = tmp_path / "z.npy"
    np.save(path, z.numpy().astype(dtype))
    got = embed_nodes(PrecomputedEmbedder.from_file(path), *labelled_graph(), seed=0)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got, z.numpy().astype(dtype).astype(np.float32))


def test_bfloat16_is_read(tmp_path, z):
    path = write(tmp_path / "z.safetensors", z.bfloat16())
    got = embed_nodes(PrecomputedEmbedder.from_file(path), *labelled_graph(), seed=0)
    assert torch.equal(got, z.bfloat16().float())


def test_file_of_the_same_content_is_the_same_embedder(tmp_path, z):
    paths = [write(tmp_path / name, z) for name in ("a.npy", "b.npy")]
    names = {PrecomputedEmbedder.from_file(path).name for path in paths}
    assert len(names) == 1
    write(paths[0], z + 1)
    assert PrecomputedEmbedder.from_file(paths[0]).name not in names


def test_embedding_is_a_copy(z):
    data, split = labelled_graph()
    embed_nodes(PrecomputedEmbedder(z), data, split, seed=0).zero_()
    assert z.any()


def test_nobody_writes_to_the_file(tmp_path, z):
    path = write(tmp_path / "z.npy", z)
    embedder = PrecomputedEmbedder.from_file(path)
    embed_nodes(embedder, *labelled_graph(), seed=0).zero_()
    assert torch.equal(embed_nodes(embedder, *labelled_graph(), seed=0), z)
    assert np.array_equal(np.load(path), z.numpy())


# --- Refused --------------------------------------------------------------------------


def test_missing_file(tmp_path):
    with pytest.raises(
        InputError, match=r"'embedding' file '.*no\.npy' does not exist"
    ):
        PrecomputedEmbedder.from_file(tmp_path / "no.npy")


def test_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        PrecomputedEmbedder.from_file(tmp_path)


@pytest.mark.parametrize("name", ["z.pt", "z.csv", "z", "z.NPY"])
def test_other_suffix(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"")
    allowed = r"must end in one of \['\.npy', '\.npz', '\.safetensors'\]"
    with pytest.raises(InputError, match=rf"{allowed} \(got '{name}'\)"):
        PrecomputedEmbedder.from_file(path)


class Explosive:
    """Would run code when unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def unreadable(path, how, z):
    if how == "pickled":
        np.save(path, np.array([Explosive()], dtype=object), allow_pickle=True)
    elif how == "pickled in npz":
        np.savez(path, z=np.array([Explosive()], dtype=object))
    elif how == "text":
        np.save(path, np.array([["a", "b"]] * 40))
    elif how == "empty":
        path.write_bytes(b"")
    elif how in ("cut", "cut zip", "cut tensors"):
        content = write(path, z).read_bytes()
        path.write_bytes(content[: len(content) // 2])
    elif how == "npz called npy":
        write(path.with_suffix(".npz"), z).rename(path)
    elif how == "npy called npz":
        write(path.with_suffix(".npy"), z).rename(path)
    elif how == "two arrays":
        np.savez(path, a=z.numpy(), b=z.numpy())
    elif how == "two tensors":
        save_file({"a": z, "b": z.clone()}, path)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("z.npy", "pickled"),
        ("z.npz", "pickled in npz"),
        ("z.npy", "text"),
        ("z.npy", "empty"),
        ("z.npz", "empty"),
        ("z.safetensors", "empty"),
        ("z.npy", "cut"),
        ("z.npz", "cut zip"),
        ("z.safetensors", "cut tensors"),
        ("z.npy", "npz called npy"),
        ("z.npz", "npy called npz"),
        ("z.npz", "two arrays"),
        ("z.safetensors", "two tensors"),
    ],
)
def test_unreadable_file_is_one_sentence(tmp_path, z, name, how):
    path = tmp_path / name
    unreadable(path, how, z)
    with pytest.raises(InputError, match=rf"{name}(: '\w+')?:? must (be|have) "):
        PrecomputedEmbedder.from_file(path)


def test_any_byte_order(tmp_path, z):
    np.save(tmp_path / "z.npy", z.numpy().astype(">f4"))
    assert torch.equal(PrecomputedEmbedder.from_file(tmp_path / "z.npy").tensor, z)


def test_two_arrays_are_named(tmp_path, z):
    unreadable(tmp_path / "z.npz", "two arrays", z)
    with pytest.raises(InputError, match=r"expected one array, found \['a', 'b'\]"):
        PrecomputedEmbedder.from_file(tmp_path / "z.npz")


@pytest.mark.parametrize("shape", [(39, 5), (41, 5), (40,), (40, 5, 1), ()])
def test_wrong_shape(shape):
    wrong = PrecomputedEmbedder(torch.ones(shape))
    sentence = r"precomputed embeddings must .*\[40, D\], one row per node \(got "
    with pytest.raises(InputError, match=sentence):
        embed_nodes(wrong, *labelled_graph(), seed=0)


def test_not_finite(z):
    z[7, 2] = float("nan")
    with pytest.raises(InputError, match=r"in 1 rows, first in row 7\)"):
        embed_nodes(PrecomputedEmbedder(z), *labelled_graph(), seed=0)
