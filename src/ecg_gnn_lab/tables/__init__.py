"""The paper's four tables from our records, its numbers beside; and a leaderboard."""

from ecg_gnn_lab.tables import ranking, scores, statistics
from ecg_gnn_lab.tables.document import FORMATS, TABLES, StudyTables

TABLES |= {
    "results": scores.results_table,
    "statistics": statistics.statistics_table,
    "hyperparameters": scores.hyperparameters_table,
    "embeddings": scores.embeddings_table,
    "leaderboard": ranking.leaderboard_table,
}

__all__ = ["FORMATS", "TABLES", "StudyTables"]
