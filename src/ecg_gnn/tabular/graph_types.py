"""The types of files that hold a whole graph; their readers come with torch."""

from importlib import import_module
from pathlib import Path
from typing import Any

from ecg_gnn.tabular.table_files import FileType

LABEL = "label"
"""What the label is called that a file holds without a name for it."""


def _type(name: str, suffix: str, reader: str) -> FileType:
    def read(path: Path, options: Any) -> Any:
        home = import_module("ecg_gnn.tabular.graph_files")
        return getattr(home, reader)(path, options)

    return FileType(name, suffix, read)


GRAPH_TYPES = (
    _type("NPZ", ".npz", "read_npz"),
    _type("saved PyG Data", ".pt", "read_pt"),
    _type("PyG tensors", ".safetensors", "read_tensors"),
    _type("GraphML", ".graphml", "read_graphml"),
    _type("facebook100", ".mat", "read_mat"),
)
