"""Many trainings: variants over splits, records, comparison, tables and figures."""

from ecg_gnn.study.compare import Comparison, Summary, compare, summarize
from ecg_gnn.study.execute import StudyReport, run_study
from ecg_gnn.study.executors import RayExecutor
from ecg_gnn.study.expand import Only
from ecg_gnn.study.recipe import Override, Part, Recipe
from ecg_gnn.study.recipe_file import load_recipe, shipped_recipes
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.run import Report, run
from ecg_gnn.study.search import Search
from ecg_gnn.study.selection import Candidate, Cell, CellKey, Selection, best_ecg
from ecg_gnn.study.store import Store, merge_stores, write_records

__all__ = [
    "Candidate",
    "Cell",
    "CellKey",
    "Comparison",
    "Only",
    "Override",
    "Part",
    "RayExecutor",
    "Recipe",
    "Record",
    "Report",
    "RunFolder",
    "Search",
    "Selection",
    "Store",
    "StudyReport",
    "Summary",
    "best_ecg",
    "compare",
    "load_recipe",
    "merge_stores",
    "run",
    "run_study",
    "shipped_recipes",
    "summarize",
    "write_records",
]
