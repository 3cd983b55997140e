"""Cora, CiteSeer and PubMed from their authors' files: pickles, checked before use."""

import pickletools
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ecg_gnn.data.download import download as fetch
from ecg_gnn.reading import first_line
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_folder

if TYPE_CHECKING:
    from ecg_gnn.data.dataset import GraphDataset

_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
_PYG_NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
_RAW_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
# How matrices and dictionaries of lists are pickled, today and by Python 2.
_HARMLESS = re.compile(
    r"scipy\.sparse\.(\w+\.)?csr_matrix|numpy\.(ndarray|dtype)|"
    r"numpy\.(core|_core)\.multiarray\.(_reconstruct|scalar)|_codecs\.encode|"
    r"collections\.defaultdict|copy_?reg\._reconstructor|"
    r"(__builtin__|builtins)\.(list|dict|object|bytes|int|long|float)"
)


def planetoid_present(name: str, root: Path) -> bool:
    """Whether all raw files of one graph are under the data root."""
    return all(path.is_file() for path in _raw_files(name, root))


def load_planetoid(name: str, root: Path, *, download: bool) -> "GraphDataset":
    """Read one graph, downloading it first if need be, under ten random splits."""
    files = _raw_files(name, root)
    raw = files[0].parent
    if not planetoid_present(name, root):
        if not download:
            raise InputError(_advice(name, raw, "it is not there"))
        _fetch(name, files)
    from torch_geometric.io import read_planetoid_data

    from ecg_gnn.data.dataset import make_dataset

    try:
        for path in files[:-1]:  # the last one is text
            _check_pickle(path)
        # Only the raw files: what PyG makes of them it would read as any pickle.
        data = read_planetoid_data(str(raw), name)
        index = files[-1].read_text(encoding="ascii").split()
        if int(data.test_mask.sum()) != len(index):
            raise ValueError("the test nodes are not all there")
    except InputError:
        raise
    except Exception as error:  # damaged files can raise anything
        reason = f"{type(error).__name__} while reading it"
        raise InputError(_advice(name, raw, reason)) from error
    return make_dataset(name=name, x=data.x, y=data.y, edges=data.edge_index.t())


def _check_pickle(path: Path) -> None:
    """Refuse a pickle that names what is not harmless: loading it runs what it names.

    What it puts together while loading (STACK_GLOBAL, EXT) is named by no argument.
    """
    naming = ("GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4")
    for opcode, argument, _ in pickletools.genops(path.read_bytes()):
        name = str(argument).replace(" ", ".")
        if opcode.name in naming and not _HARMLESS.fullmatch(name):
            raise InputError(
                f"{path}: must hold plain values (got {name}, which is never loaded)"
            )


def _raw_files(name: str, root: Path) -> list[Path]:
    raw = root / "planetoid" / _PYG_NAMES[name] / "raw"
    return [raw / f"ind.{name}.{part}" for part in _RAW_PARTS]


def _fetch(name: str, files: list[Path]) -> None:
    """Download all files to a temporary folder, and move them once all are there."""
    raw = files[0].parent
    try:
        # Elsewhere, so that a download that is killed leaves nothing among the data.
        with tempfile.TemporaryDirectory() as staging:
            for path in files:
                fetch(f"{_URL}/{path.name}", Path(staging, path.name), None, None)
            # A half-filled folder of another program would stop the renaming.
            shutil.rmtree(raw, ignore_errors=True)
            with atomic_folder(raw) as folder:
                shutil.copytree(staging, folder, dirs_exist_ok=True)
    except (InputError, OSError) as error:
        raise InputError(_advice(name, raw, first_line(error))) from error


def _advice(name: str, raw: Path, reason: str) -> str:
    return (
        f"{name!r} cannot be loaded ({reason}): with a network it is downloaded; "
        f"without, put the raw files ind.{name}.* into {raw}, or set --data-root / "
        "ECG_DATA"
    )
