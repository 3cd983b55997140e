"""From the tables that people have to a graph with features."""

from typing import TYPE_CHECKING

from ecg_gnn.system import lazy_names

if TYPE_CHECKING:
    from ecg_gnn.tabular.columns import Table as Table
    from ecg_gnn.tabular.graph_files import from_data as from_data
    from ecg_gnn.tabular.graph_files import import_graph as import_graph
    from ecg_gnn.tabular.importing import ImportOptions as ImportOptions
    from ecg_gnn.tabular.importing import import_files as import_files
    from ecg_gnn.tabular.importing import import_tables as import_tables
    from ecg_gnn.tabular.named_graph import NamedGraph as NamedGraph
    from ecg_gnn.tabular.named_graph import load_named_graph as load_named_graph
    from ecg_gnn.tabular.table_files import read_table as read_table
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)
