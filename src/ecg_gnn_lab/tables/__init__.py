"""The paper's four tables from our records, its numbers beside; and a leaderboard."""

from ecg_gnn.study.store import Store
from ecg_gnn_lab.tables.document import FORMATS, TableDocument, render
from ecg_gnn_lab.tables.hyperparameters import hyperparameters_table
from ecg_gnn_lab.tables.leaderboard import leaderboard_table
from ecg_gnn_lab.tables.scores import embeddings_table, results_table
from ecg_gnn_lab.tables.statistics import statistics_table

TABLES = {
    "results": results_table,
    "statistics": statistics_table,
    "hyperparameters": hyperparameters_table,
    "embeddings": embeddings_table,
    "leaderboard": leaderboard_table,
}

__all__ = ["FORMATS", "TABLES", "TableDocument", "make_table", "render"]


def make_table(name: str, store: Store, recipe: str | None = None) -> TableDocument:
    """One of the tables by its name, from all of a store or from one recipe."""
    return TABLES[name](store, recipe)
