"""Many trainings: a recipe's grid or a search, run into one store, then compared.

The nouns, in the order in which a study uses them:

- A *variant* is what is trained: the baseline, ECG with some embedding, or a control.
- A *recipe* lists datasets, models, variants and a grid of settings to try.
- A *cell* is one dataset, model and variant of a recipe.
- A *configuration* is a cell with all settings fixed: one point of its grid.
- A *unit* is one training: a configuration on one split from one seed.
- A *group* is units of one configuration and seed; they train together.
- A *trial* is one point of a search: the units of one configuration.
- An *outcome* is how a unit ended: a *result* (its numbers) or a failure.
- A *record* is what is kept of a finished unit: which one it was, and its result.

The modules, in the same order: recipe, grid, groups, units, run (some variants, without
a store), search (what to try next), executors (where to do it), store, execute (all of
this together), selection and compare (what came of it).
"""

from ecg_gnn.study.execute import StudyReport, run_study
from ecg_gnn.study.grid import Only
from ecg_gnn.study.ray_executor import RayExecutor
from ecg_gnn.study.recipe import Override, Part, Recipe, load_recipe, shipped_recipes
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.run import Comparison, Report, Summary, compare, run, summarize
from ecg_gnn.study.search_space import Search
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
