import dataclasses
import os
from pathlib import Path

import pytest

from ecg_gnn.data import CATALOGUE, catalogue, load_dataset, resolve_data_root
from ecg_gnn.data.graph_storage import MANIFEST
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file

FILES = [e for e in CATALOGUE.values() if e.kind != "generator"]
NETWORK_ONLY = {"roman-empire", "amazon-ratings", "questions"}


@pytest.fixture
def toy_entry(arrays, save, monkeypatch):
    """The entry of texas, pinned to a small file that a local address serves."""
    path = save(arrays, "upstream.npz")
    folder = path.parent / "upstream"
    folder.mkdir()
    path.rename(folder / "texas.npz")
    path = folder / "texas.npz"
    entry = dataclasses.replace(
        CATALOGUE["texas"],
        sha256=sha256_of_file(path),
        size=path.stat().st_size,
        classes=2,
    )
    monkeypatch.setitem(CATALOGUE, "texas", entry)
    monkeypatch.setattr(catalogue, "BASE_URL", folder.as_uri() + "/")
    return path


def test_table_is_complete():
    assert len(CATALOGUE) == 17
    for name, entry in CATALOGUE.items():
        assert name == entry.name
        assert entry.description
        assert (entry.metric == "roc_auc") == (entry.classes == 2)
    for entry in FILES:
        assert entry.sha256 is not None
        assert len(entry.sha256) == 64
        assert entry.size
        assert entry.file == entry.name.replace("-", "_") + ".npz"
    assert len({e.sha256 for e in FILES}) == len(FILES)


@pytest.mark.dataset
@pytest.mark.parametrize("entry", FILES, ids=lambda e: e.name)
def test_real_file(data_root, entry):
    if not (data_root / entry.file).exists():
        assert entry.name in NETWORK_ONLY
        pytest.skip(f"{entry.file} is not in ECG_DATA")
    dataset = load_dataset(entry.name, data_root=data_root, download=False)
    assert (data_root / entry.file).stat().st_size == entry.size
    assert dataset.sha256 == entry.sha256
    assert dataset.name == entry.name
    assert dataset.num_splits == 10
    for key in ("nodes", "edges", "features", "classes"):
        assert getattr(dataset, f"num_{key}") == getattr(entry, key)
    assert dataset.metric == entry.metric
    assert bool(dataset.note) == (entry.kind == "substitute")


def test_generators_match_their_entries():
    for name in ("minesweeper-gen", "csbm"):
        dataset, entry = load_dataset(name), CATALOGUE[name]
        assert dataset.num_nodes == entry.nodes
        assert dataset.num_features == entry.features
        assert entry.edges in (None, dataset.num_edges)


def test_absent_file_is_downloaded_once(toy_entry, tmp_path, monkeypatch):
    root = tmp_path / "root"
    dataset = load_dataset("texas", data_root=root)
    assert dataset.num_nodes == 24
    assert [p.name for p in root.iterdir()] == ["texas.npz"]
    monkeypatch.setattr(catalogue, "BASE_URL", "http://127.0.0.1:9/")
    assert load_dataset("Texas", data_root=root).sha256 == dataset.sha256


@pytest.mark.parametrize("download", [True, False])
def test_offline_says_which_file_to_put_where(tmp_path, monkeypatch, download):
    monkeypatch.setattr(catalogue, "BASE_URL", "http://127.0.0.1:9/")
    pin = CATALOGUE["roman-empire"].sha256
    message = rf"put roman_empire\.npz \(sha256 {pin}\) into {tmp_path}.*ECG_DATA"
    with pytest.raises(InputError, match=message) as caught:
        load_dataset("roman_empire", data_root=tmp_path, download=download)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_substitute_is_never_downloaded(tmp_path):
    with pytest.raises(InputError, match=r"offered nowhere.*put roman_empire_glove"):
        load_dataset("roman-empire-glove", data_root=tmp_path)


def test_file_with_another_checksum_is_refused(toy_entry, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "texas.npz").write_bytes(toy_entry.read_bytes() + b"x")
    with pytest.raises(InputError, match=r"texas\.npz: sha256 must be \w{64} \(got \w"):
        load_dataset("texas", data_root=root)


def test_data_root_order(monkeypatch):
    monkeypatch.setenv("ECG_DATA", "/from/env")
    assert resolve_data_root("/given") == Path("/given")
    assert resolve_data_root() == Path("/from/env")
    monkeypatch.delenv("ECG_DATA")
    assert resolve_data_root() == Path(os.environ["ECG_CACHE"]) / "data"
    monkeypatch.delenv("ECG_CACHE")
    assert resolve_data_root() == Path.home() / ".cache" / "ecg_gnn" / "data"


def test_path(arrays, save, monkeypatch):
    path = save(arrays, "mine.npz")
    assert load_dataset(str(path)).name == "mine"
    monkeypatch.chdir(path.parent)
    assert load_dataset("mine.npz").num_nodes == 24
    with pytest.raises(InputError, match="cannot be read"):
        load_dataset("./mine")


def test_parameters():
    dataset = load_dataset("minesweeper-gen:rows=10, cols=20,seed=1,mines=.1")
    assert dataset.num_nodes == 200
    assert int(dataset.y.sum()) == 20
    assert load_dataset("csbm:nodes=50,homophily=1").num_nodes == 50


def test_a_graph_that_is_not_there():
    with pytest.raises(InputError, match=r"\(No such file or directory\)"):
        load_dataset("nowhere/roads.npz")


def test_a_graph_that_is_nearly_there_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cities.npz").touch()
    Path("roads").mkdir()
    Path("roads", MANIFEST).touch()
    for name, meant in (("cities", "cities.npz"), ("raods", "roads")):
        with pytest.raises(InputError, match=f"'{name}'; did you mean '{meant}'"):
            load_dataset(name)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "minesweper",
            r"one of \[.*\(got 'minesweper'; did you mean 'minesweeper'\?\)",
        ),
        ("", r"one of \[.*\(got ''\)"),
        ("zzz", r"one of \['roman-empire'.*\(got 'zzz'\)"),
        ("texas:seed=1", r"'texas' takes no parameters.*\(got 'texas:seed=1'\)"),
        ("csbm:edges=3", r"keys \['nodes', .*\(got 'edges=3', not one of them\)"),
        ("csbm:", r"takes key=value pairs.*\(got ''"),
        ("csbm:nodes", r"takes key=value pairs.*\(got 'nodes'"),
        ("csbm:seed=1,seed=2", r"each once.*\(got 'seed=2', given twice\)"),
        ("csbm:nodes=many", r"'nodes' of 'csbm' must be of type int \(got 'many'\)"),
        ("csbm:nodes=1e3", r"must be of type int \(got '1e3'\)"),
        ("csbm:degree=", r"'degree' of 'csbm' must be of type float \(got ''\)"),
        ("csbm:homophily=nan", r"'homophily' must be in \[0, 1\] \(got nan\)"),
    ],
)
def test_wrong_spec(spec, message):
    with pytest.raises(InputError, match=message):
        load_dataset(spec)
