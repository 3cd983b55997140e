"""Model folders from a stranger: what is no file, and weights that overflow."""

import hashlib
import json
import os
import re
import shutil
import signal
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ecg_gnn.ensemble import tournament
from ecg_gnn.ensemble.candidates import candidates
from ecg_gnn.ensemble.tree_texts import tensor_to_text, text_to_tensor
from ecg_gnn.inference import best_fit
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.inference.model_folder import _checksum, read_model
from ecg_gnn.inference.predictions import predict_stored
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import load_named_graph

MEMBERS = "members.safetensors"
FILES = ["model.json", "graph.npz", "weights.safetensors", "index.npz"]


@pytest.fixture(scope="module")
def graph():
    return load_named_graph("csbm:nodes=60")


@pytest.fixture
def model(graph, tmp_path):
    fit_model(graph, tmp_path / "m", steps=2, hidden=8, layers=1, k=3, device="cpu")
    return tmp_path / "m"


@pytest.fixture(scope="module")
def whole_ensemble(graph, tmp_path_factory):
    """Of boosted trees that read neighbours."""
    folder = tmp_path_factory.mktemp("whole") / "e"
    with pytest.MonkeyPatch.context() as patch:
        found = [c for c in candidates(0) if c.name == "boosting, neighbours"]
        patch.setattr(tournament, "candidates", lambda _: found)
        patch.setattr(tournament, "_MOST_DRAWS", 0)
        patch.setattr(best_fit, "_more_candidates", lambda *_: [])
        best_fit.fit_best(graph, folder, budget=20, workers=1)
    return folder


@pytest.fixture
def ensemble(whole_ensemble, tmp_path):
    return shutil.copytree(whole_ensemble, tmp_path / "e")


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


def edited(folder, name, edit_tensors=None, edit_manifest=None):
    """A model whose weights and manifest are others, with checksums that fit them."""
    tensors = load_file(folder / name)
    if edit_tensors is not None:
        edit_tensors(tensors)
    save_file(tensors, folder / name)
    manifest = json.loads((folder / "model.json").read_text())
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    manifest["classifier"]["sha256"] = digest
    if edit_manifest is not None:
        edit_manifest(manifest["classifier"])
    manifest["sha256"] = _checksum(manifest)
    (folder / "model.json").write_text(json.dumps(manifest))
    return read_model(folder)


def with_huge_weights(folder, name):
    """Weights as large as numbers get."""

    def enlarge(tensors):
        for key, tensor in tensors.items():
            if tensor.is_floating_point() and not key.startswith("ensemble."):
                tensor.fill_(torch.finfo(tensor.dtype).max / 4)

    return edited(folder, name, enlarge)


def test_weights_that_overflow_are_told(model):
    loaded = with_huge_weights(model, "weights.safetensors")
    with pytest.raises(InputError, match=r"must give finite .* for 60 of 60 nodes"):
        predict_stored(loaded, every=True)


def test_an_ensembles_weights_that_overflow_are_told(graph, tmp_path):
    best_fit.fit_best(graph, tmp_path / "e", budget=1.0, workers=1)
    loaded = with_huge_weights(tmp_path / "e", MEMBERS)
    with pytest.raises(InputError, match="must give finite predictions"):
        predict_stored(loaded, every=True)


# LightGBM itself ends the process at most of these, or reads beyond its memory.
TREES = {
    "a circle": (r"(left_child=)\S+", r"\g<1>0"),
    "a child that is not there": (r"(left_child=)\S+", r"\g<1>100000000"),
    "a leaf that is not there": (r"(right_child=)\S+", r"\g<1>-100000000"),
    "a column that is not there": (r"(split_feature=)\S+", r"\g<1>100000000"),
    "a comparison of categories": (r"(decision_type=)\S+", r"\g<1>1"),
    "a leaf too few": (r"(leaf_value=)\S+ ", r"\1"),
    "a number too large": (r"(leaf_value=)\S+", r"\g<1>1e+999"),
    "no number": (r"(threshold=)\S+", r"\g<1>x"),
    "half a text": (r"(?s)(Tree=1\n.{99}).*", r"\1"),
    "no trees": (r"(?s)Tree=.*", ""),
}


@pytest.mark.parametrize("what", TREES)
def test_trees_that_are_none_are_refused(ensemble, what):
    def edit(tensors):
        for name, tensor in tensors.items():
            if tensor.dtype == torch.uint8:
                changed = re.sub(*TREES[what], tensor_to_text(tensor))
                assert changed != tensor_to_text(tensor)
                tensors[name] = text_to_tensor(changed)

    with pytest.raises(InputError, match=r"members\.safetensors: must be the members"):
        edited(ensemble, MEMBERS, edit)


def test_nothing_of_a_text_counts_but_its_trees(ensemble):
    def edit(tensors):
        for name, tensor in tensors.items():
            if tensor.dtype == torch.uint8:
                head, trees = tensor_to_text(tensor).split("tree_sizes=", 1)
                head = head.replace("num_class=1", "num_class=1000000000")
                tensors[name] = text_to_tensor(f"{head}tree_sizes=-1 9999999{trees}")

    before = read_model(ensemble).classifier.probabilities()
    assert np.array_equal(
        edited(ensemble, MEMBERS, edit).classifier.probabilities(), before
    )


def without_parts(described):
    for member in described["members"]:
        member["state"]["parts"] = []


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("known", torch.ones(1, 60, dtype=torch.bool)),
        ("values", torch.zeros(59, dtype=torch.int64)),
        ("sparse_columns", torch.zeros(8)),
        ("errors", torch.zeros(3, 3)),
    ],
)
def test_arrays_of_other_shapes_are_refused(ensemble, name, changed):
    def edit(tensors):
        tensors[f"ensemble.{name}"] = changed

    with pytest.raises(InputError, match=f"{name} has shape"):
        edited(ensemble, MEMBERS, edit)


@pytest.mark.parametrize("offsets", [["x", "y"], [1.0, 2.0, 3.0]])
def test_offsets_that_are_none_are_refused(ensemble, offsets):
    with pytest.raises(InputError, match="must be the members"):
        edited(ensemble, MEMBERS, edit_manifest=lambda one: one.update(offsets=offsets))


@pytest.mark.parametrize("weight", ["inf", "nan", -1, 0])
def test_weights_of_members_that_are_none_are_refused(ensemble, weight):
    def edit(described):
        for member in described["members"]:
            member["weight"] = weight

    with pytest.raises(InputError, match=r"a weight must be|the weights must have"):
        edited(ensemble, MEMBERS, edit_manifest=edit)


def test_members_that_do_not_fit_the_graph_are_told(ensemble, capfd):
    loaded = edited(ensemble, MEMBERS, edit_manifest=without_parts)
    with pytest.raises(InputError, match=r"the model's member '.*' must fit its graph"):
        predict_stored(loaded, every=True)
    assert not any(capfd.readouterr())
