"""One SQLite file with every training of a study: claimed once, never lost."""

from ecg_gnn.study.store.curves import Curves
from ecg_gnn.study.store.merge import Merged, merge_stores
from ecg_gnn.study.store.reader import Store
from ecg_gnn.study.store.rows import (
    Configuration,
    DatasetInfo,
    Failure,
    Progress,
    Result,
    UnitRecord,
)
from ecg_gnn.study.store.text_writer import write_records
from ecg_gnn.study.store.writer import StoreWriter

__all__ = [
    "Configuration",
    "Curves",
    "DatasetInfo",
    "Failure",
    "Merged",
    "Progress",
    "Result",
    "Store",
    "StoreWriter",
    "UnitRecord",
    "merge_stores",
    "write_records",
]
