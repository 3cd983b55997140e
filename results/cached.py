"""The tables of the records: asked for by many, made once."""

from functools import cache

from ecg_gnn.study import Store
from ecg_gnn_lab.tables import TableDocument, make_table


@cache
def table(name: str, store: Store) -> TableDocument:
    """One of the paper's tables."""
    return make_table(name, store)
