"""Model folders from a stranger: what is no file, and weights that overflow."""

import hashlib
import json
import os
import signal
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file, save_file

from ecg_gnn.inference.best_fit import fit_best
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.inference.model_folder import _checksum, read_model
from ecg_gnn.inference.predictions import predict_stored
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import load_named_graph

FILES = ["model.json", "graph.npz", "weights.safetensors", "index.npz"]


@pytest.fixture(scope="module")
def graph():
    return load_named_graph("csbm:nodes=60")


@pytest.fixture
def model(graph, tmp_path):
    fit_model(graph, tmp_path / "m", steps=2, hidden=8, layers=1, k=3, device="cpu")
    return tmp_path / "m"


@contextmanager
def at_most(seconds):
    """Fail after that long, even inside a call that waits."""

    def give_up(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_only_files_are_read(model, name, kind):
    (model / name).unlink()
    if kind == "pipe":
        os.mkfifo(model / name)
    else:
        (model / name).symlink_to("/dev/zero")
    with (
        at_most(10),
        pytest.raises(InputError, match=rf"{name}: cannot be read \(a pipe or a dev"),
    ):
        read_model(model)


def with_huge_weights(folder, name):
    """Weights as large as numbers get, with the checksums that go with them."""
    tensors = load_file(folder / name)
    for key, tensor in tensors.items():
        if tensor.is_floating_point() and not key.startswith("ensemble."):
            tensor.fill_(torch.finfo(tensor.dtype).max / 4)
    save_file(tensors, folder / name)
    manifest = json.loads((folder / "model.json").read_text())
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    manifest["classifier"]["sha256"] = digest
    manifest["sha256"] = _checksum(manifest)
    (folder / "model.json").write_text(json.dumps(manifest))
    return read_model(folder)


def test_weights_that_overflow_are_told(model):
    loaded = with_huge_weights(model, "weights.safetensors")
    with pytest.raises(InputError, match=r"must give finite .* for 60 of 60 nodes"):
        predict_stored(loaded, every=True)


def test_an_ensembles_weights_that_overflow_are_told(graph, tmp_path):
    fit_best(graph, tmp_path / "e", budget=1.0, workers=1)
    loaded = with_huge_weights(tmp_path / "e", "members.safetensors")
    with pytest.raises(InputError, match="must give finite predictions"):
        predict_stored(loaded, every=True)
