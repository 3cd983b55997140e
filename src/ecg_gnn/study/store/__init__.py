"""One SQLite file with every training of a study: claimed once, never lost."""

from ecg_gnn.study.store.reader import Store as Store
from ecg_gnn.study.store.rows import Configuration as Configuration
from ecg_gnn.study.store.rows import Curves as Curves
from ecg_gnn.study.store.rows import DatasetInfo as DatasetInfo
from ecg_gnn.study.store.rows import Failed as Failed
from ecg_gnn.study.store.rows import Failure as Failure
from ecg_gnn.study.store.rows import Progress as Progress
from ecg_gnn.study.store.rows import StoredUnit as StoredUnit
from ecg_gnn.study.store.rows import UnitRecord as UnitRecord
from ecg_gnn.study.store.text import write_records as write_records
from ecg_gnn.study.store.writer import StoreWriter as StoreWriter
from ecg_gnn.study.store.writer import merge_stores as merge_stores
