"""Cora, CiteSeer and PubMed, by way of PyG."""

import shutil
import tempfile
from pathlib import Path

from ecg_gnn.checks import InputError
from ecg_gnn.data.dataset import GraphDataset, make_dataset

_PYG_NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
_RAW_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def planetoid_present(name: str, root: Path) -> bool:
    """Whether all raw files of one graph are under the data root."""
    raw = root / "planetoid" / _PYG_NAMES[name] / "raw"
    return all((raw / f"ind.{name}.{part}").is_file() for part in _RAW_PARTS)


def load_planetoid(name: str, root: Path, *, download: bool) -> GraphDataset:
    """Read one graph, downloading it first if need be, under ten random splits."""
    folder = root / "planetoid"
    if not planetoid_present(name, root):
        if not download:
            raise InputError(_advice(name, folder, "it is not there"))
        _fetch(name, folder)
    from torch_geometric.datasets import Planetoid

    try:
        data = Planetoid(str(folder), _PYG_NAMES[name])[0]
    except Exception as error:  # unpickling damaged files can raise anything
        reason = f"{type(error).__name__} while reading it"
        raise InputError(_advice(name, folder, reason)) from error
    return make_dataset(name=name, x=data.x, y=data.y, edges=data.edge_index.t())


def _fetch(name: str, folder: Path) -> None:
    """Have PyG download into a temporary folder; move it over once it is whole."""
    from torch_geometric.datasets import Planetoid

    pyg_name = _PYG_NAMES[name]
    try:
        # Elsewhere at first: a failure leaves no trace in the data root.
        with tempfile.TemporaryDirectory() as staging:
            Planetoid(staging, pyg_name)
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as beside:
                whole = shutil.move(Path(staging, pyg_name), beside)
                # A half-filled folder of another program would stop the renaming.
                shutil.rmtree(folder / pyg_name, ignore_errors=True)
                Path(whole).replace(folder / pyg_name)
    except Exception as error:  # PyG's transport decides what a dead network raises
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(_advice(name, folder, reason)) from error


def _advice(name: str, folder: Path, reason: str) -> str:
    """One line: what failed, and what to put where."""
    return (
        f"{name!r} cannot be loaded ({reason}): with a network it is downloaded; "
        f"without, put PyG's raw files ind.{name}.* into "
        f"{folder / _PYG_NAMES[name] / 'raw'}, or set --data-root / ECG_DATA"
    )
