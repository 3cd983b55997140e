"""From the tables that people have to a graph with features."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecg_gnn.tabular.columns import Table as Table
    from ecg_gnn.tabular.graph_files import from_data as from_data
    from ecg_gnn.tabular.graph_files import from_networkx as from_networkx
    from ecg_gnn.tabular.graph_files import import_graph as import_graph
    from ecg_gnn.tabular.importing import ImportOptions as ImportOptions
    from ecg_gnn.tabular.importing import import_files as import_files
    from ecg_gnn.tabular.importing import import_tables as import_tables
    from ecg_gnn.tabular.named_graph import NamedGraph as NamedGraph
    from ecg_gnn.tabular.named_graph import load_named_graph as load_named_graph
    from ecg_gnn.tabular.table_files import read_table as read_table

# Imported when first asked for: tables and columns do not need torch.
_HOMES = {
    "columns": ("Table",),
    "graph_files": ("from_data", "from_networkx", "import_graph"),
    "importing": ("ImportOptions", "import_files", "import_tables"),
    "named_graph": ("NamedGraph", "load_named_graph"),
    "table_files": ("read_table",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
