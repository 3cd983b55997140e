"""Many trainings: variants over splits, records, comparison, tables and figures."""

from ecg_gnn.study.compare import Comparison, Summary, compare, summarize
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.run import Report, run

__all__ = [
    "Comparison",
    "Record",
    "Report",
    "RunFolder",
    "Summary",
    "compare",
    "run",
    "summarize",
]
