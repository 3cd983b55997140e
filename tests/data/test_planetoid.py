"""PyG's reader is replaced by a small one: no test needs a network."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from ecg_gnn.checks import InputError
from ecg_gnn.data import load_dataset
from ecg_gnn.data.planetoid import _RAW_PARTS, planetoid_present

# PyG still compiles with torch.jit when it is imported; nothing we can change.
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is:DeprecationWarning"
)


def small_graph():
    y = torch.arange(24) % 3
    ring = torch.stack([torch.arange(24), (torch.arange(24) + 1) % 24])
    edge_index = torch.cat([ring, ring.flip(0)], dim=1)
    return SimpleNamespace(x=torch.eye(24), y=y, edge_index=edge_index)


class FakePlanetoid:
    """Writes the raw files, then answers with a ring of 24 nodes."""

    fails_after: int | None = None

    def __init__(self, root, name):
        raw = Path(root, name, "raw")
        raw.mkdir(parents=True, exist_ok=True)
        for count, part in enumerate(_RAW_PARTS):
            if count == self.fails_after:
                raise ConnectionError("Cannot connect\nto anything")
            (raw / f"ind.{name.lower()}.{part}").touch()

    def __getitem__(self, index):
        return small_graph()


@pytest.fixture
def fake(monkeypatch):
    import torch_geometric.datasets

    monkeypatch.setattr(FakePlanetoid, "fails_after", None)
    monkeypatch.setattr(torch_geometric.datasets, "Planetoid", FakePlanetoid)
    return FakePlanetoid


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_downloaded_into_the_data_root(fake, tmp_path, name):
    assert not planetoid_present(name, tmp_path)
    dataset = load_dataset(name, data_root=tmp_path)
    assert (dataset.num_nodes, dataset.num_edges, dataset.num_splits) == (24, 24, 10)
    assert planetoid_present(name, tmp_path)
    assert len(list((tmp_path / "planetoid").iterdir())) == 1
    again = load_dataset(name, data_root=tmp_path, download=False)
    assert again.sha256 == dataset.sha256


def test_failed_download_leaves_nothing(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(fake, "fails_after", 3)
    message = (
        r"'cora' cannot be loaded \(Cannot connect\).*ind\.cora\.\* into .*Cora/raw"
    )
    with pytest.raises(InputError, match=message) as caught:
        load_dataset("cora", data_root=tmp_path / "root")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "root").exists()


def test_half_filled_folder_is_replaced(fake, tmp_path):
    raw = tmp_path / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    (raw / "ind.cora.x").write_text("half")
    load_dataset("cora", data_root=tmp_path)
    assert planetoid_present("cora", tmp_path)


def test_no_download_and_damaged_files(fake, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="it is not there"):
        load_dataset("cora", data_root=tmp_path, download=False)
    load_dataset("cora", data_root=tmp_path)
    monkeypatch.setattr(fake, "fails_after", 0)
    with pytest.raises(InputError, match="ConnectionError while reading it"):
        load_dataset("cora", data_root=tmp_path)
