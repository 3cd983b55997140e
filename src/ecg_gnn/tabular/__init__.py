"""From the tables people have to a graph with features: readers, columns, import."""

from ecg_gnn.tabular.graph import OwnGraph, load_own_graph
from ecg_gnn.tabular.importing import ImportOptions, import_files, import_tables
from ecg_gnn.tabular.tables import Table, read_table

__all__ = [
    "ImportOptions",
    "OwnGraph",
    "Table",
    "import_files",
    "import_tables",
    "load_own_graph",
    "read_table",
]
