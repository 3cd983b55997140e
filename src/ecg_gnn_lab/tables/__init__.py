"""The paper's four tables from our records, its numbers beside; and a leaderboard."""

from ecg_gnn.study.store import Store
from ecg_gnn_lab.tables.document import FORMATS, Source, TableDocument, render
from ecg_gnn_lab.tables.leaderboard import leaderboard_table
from ecg_gnn_lab.tables.scores import (
    embeddings_table,
    hyperparameters_table,
    results_table,
)
from ecg_gnn_lab.tables.statistics import statistics_table

TABLES = {
    "results": results_table,
    "statistics": statistics_table,
    "hyperparameters": hyperparameters_table,
    "embeddings": embeddings_table,
    "leaderboard": leaderboard_table,
}

__all__ = ["FORMATS", "TABLES", "StudyTables", "TableDocument", "make_table", "render"]


class StudyTables(Source):
    """The tables of a store, or of one recipe, each made when it is first needed."""

    def __init__(self, store: Store, recipe: str | None = None) -> None:
        super().__init__(store, recipe)
        self._made: dict[str, TableDocument] = {}

    def __getitem__(self, name: str) -> TableDocument:
        if name not in self._made:
            self._made[name] = TABLES[name](self)
        return self._made[name]


def make_table(name: str, store: Store, recipe: str | None = None) -> TableDocument:
    """One of the tables by its name, from all of a store or from one recipe."""
    return StudyTables(store, recipe)[name]
