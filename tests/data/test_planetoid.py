"""Small files in the authors' format stand for the real ones: no test has a network."""

import os
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ecg_gnn.data import load_dataset, planetoid
from ecg_gnn.data.planetoid import planetoid_present
from ecg_gnn.system.checks import InputError

# PyG still compiles with torch.jit when it is imported; nothing we can change.
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is:DeprecationWarning"
)
NUM_NODES, NUM_TRAIN = 624, 24


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def raw_files(name):
    """A ring: 24 training nodes, 100 of the rest to test."""
    x = csr_matrix(np.eye(NUM_NODES, 5, dtype=np.float32))
    y = np.eye(3, dtype=np.int32)[np.arange(NUM_NODES) % 3]
    graph = defaultdict(list)
    for node in range(NUM_NODES):
        graph[node].append((node + 1) % NUM_NODES)
    first_test = NUM_NODES - 100
    parts = {
        "x": x[:NUM_TRAIN],
        "tx": x[first_test:],
        "allx": x[:first_test],
        "y": y[:NUM_TRAIN],
        "ty": y[first_test:],
        "ally": y[:first_test],
        "graph": graph,
    }
    found = {part: pickle.dumps(value, protocol=2) for part, value in parts.items()}
    found["test.index"] = "".join(f"{n}\n" for n in range(first_test, NUM_NODES))
    found["test.index"] = found["test.index"].encode()
    return {f"ind.{name}.{part}": content for part, content in found.items()}


class Server:
    """Answers downloads; fails after some of them, if told so."""

    fails_after: int | None = None

    def __init__(self):
        self.count = 0

    def __call__(self, url, path, sha256, size):
        if self.count == self.fails_after:
            raise InputError(f"{url}: cannot be downloaded (Cannot connect\nto it)")
        self.count += 1
        name = url.rpartition("/")[2]
        Path(path).write_bytes(raw_files(name.split(".")[1])[name])


@pytest.fixture
def server(monkeypatch):
    made = Server()
    monkeypatch.setattr(planetoid, "fetch", made)
    return made


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_downloaded_into_the_data_root(server, tmp_path, name):
    assert not planetoid_present(name, tmp_path)
    dataset = load_dataset(name, data_root=tmp_path)
    assert (dataset.num_nodes, dataset.num_edges) == (NUM_NODES, NUM_NODES)
    assert (dataset.num_splits, dataset.y[:4].tolist()) == (10, [0, 1, 2, 0])
    assert planetoid_present(name, tmp_path)
    assert len(list((tmp_path / "planetoid").iterdir())) == 1
    again = load_dataset(name, data_root=tmp_path, download=False)
    assert again.sha256 == dataset.sha256
    assert server.count == 8


def test_failed_download_leaves_nothing(server, tmp_path):
    server.fails_after = 3
    message = r"'cora' cannot be loaded \(.*Cannot connect\).*ind\.cora\.\* into .*raw"
    with pytest.raises(InputError, match=message) as caught:
        load_dataset("cora", data_root=tmp_path / "root")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "root").exists()


def test_half_filled_folder_is_replaced(server, tmp_path):
    raw = tmp_path / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    (raw / "ind.cora.x").write_text("half")
    load_dataset("cora", data_root=tmp_path)
    assert planetoid_present("cora", tmp_path)


def test_no_download_and_damaged_files(server, tmp_path):
    with pytest.raises(InputError, match="it is not there"):
        load_dataset("cora", data_root=tmp_path, download=False)
    load_dataset("cora", data_root=tmp_path)
    raw = tmp_path / "planetoid/Cora/raw"
    for name, content in {
        "ind.cora.graph": b"\x80\x02",
        "ind.cora.x": pickle.dumps([1, 2]),
        "ind.cora.test.index": b"one",
    }.items():
        whole = (raw / name).read_bytes()
        (raw / name).write_bytes(content)
        with pytest.raises(InputError, match="Error while reading it"):
            load_dataset("cora", data_root=tmp_path)
        (raw / name).write_bytes(whole)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_pickles_that_run_code_are_never_loaded(
    server, tmp_path, monkeypatch, protocol
):
    monkeypatch.chdir(tmp_path)
    load_dataset("cora", data_root=tmp_path)
    evil = pickle.dumps({1: Evil()}, protocol=protocol)
    (tmp_path / "planetoid/Cora/raw/ind.cora.graph").write_bytes(evil)
    with pytest.raises(InputError, match=r"must hold plain values .*never loaded"):
        load_dataset("cora", data_root=tmp_path)
    assert not (tmp_path / "evil").exists()
