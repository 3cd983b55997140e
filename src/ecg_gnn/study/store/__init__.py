"""One SQLite file with every training of a study: claimed once, never lost."""

from ecg_gnn.study.store.reader import Store
from ecg_gnn.study.store.rows import (
    Configuration,
    Curves,
    DatasetInfo,
    Failed,
    Failure,
    Progress,
    Result,
    StoredUnit,
    UnitRecord,
    known_steps,
    thinned,
)
from ecg_gnn.study.store.text import write_records
from ecg_gnn.study.store.writer import StoreWriter, merge_stores

__all__ = [
    "Configuration",
    "Curves",
    "DatasetInfo",
    "Failed",
    "Failure",
    "Progress",
    "Result",
    "Store",
    "StoreWriter",
    "StoredUnit",
    "UnitRecord",
    "known_steps",
    "merge_stores",
    "thinned",
    "write_records",
]
