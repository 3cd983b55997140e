"""Files that a stranger wrote: read within a limit, and nothing in them is ever run."""

from ecg_gnn.reading.arrays import (
    AnyArray,
    check_archive,
    read_archive,
    read_array_file,
)
from ecg_gnn.reading.limits import MAX_CELLS, check_cells, max_cells
from ecg_gnn.reading.mapped import MappedFile, map_array_file
from ecg_gnn.reading.paths import expanded
from ecg_gnn.reading.plain import read_json, read_yaml
from ecg_gnn.reading.refusal import first_line, refusing

__all__ = [
    "MAX_CELLS",
    "AnyArray",
    "MappedFile",
    "check_archive",
    "check_cells",
    "expanded",
    "first_line",
    "map_array_file",
    "max_cells",
    "read_archive",
    "read_array_file",
    "read_json",
    "read_yaml",
    "refusing",
]
