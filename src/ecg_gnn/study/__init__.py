"""Many trainings: a recipe's grid or a search, run into one store, then compared.

The nouns, in the order in which a study uses them:

- A *variant* is what is trained: the baseline, ECG with some embedding, or a control.
- A *recipe* lists datasets, models, variants and a grid of settings to try.
- A *plan* is one dataset, model and variant of a recipe, with its grid or one point.
- A *configuration* is a plan with all settings filled in.
- A *unit* is one training: a configuration on one split from one seed.
- A *group* is units of one configuration and seed; they train together.
- A *record* is what is kept of a finished unit: which one it was, and its result.

The modules, in the same order: recipe, grid, groups, units, one_run (some variants,
without a store) and comparison (what came of it), search (which points to try),
executors (where to train), store, execute (all of this together), and selection.
"""

from typing import TYPE_CHECKING

from ecg_gnn.system import lazy_names

if TYPE_CHECKING:
    from ecg_gnn.study.comparison import Comparison as Comparison
    from ecg_gnn.study.comparison import Report as Report
    from ecg_gnn.study.comparison import Summary as Summary
    from ecg_gnn.study.comparison import compare as compare
    from ecg_gnn.study.comparison import summarize as summarize
    from ecg_gnn.study.execute import run_study as run_study
    from ecg_gnn.study.grid import Only as Only
    from ecg_gnn.study.one_run import run as run
    from ecg_gnn.study.recipe import Part as Part
    from ecg_gnn.study.recipe import Recipe as Recipe
    from ecg_gnn.study.recipe import load_recipe as load_recipe
    from ecg_gnn.study.recipe import shipped_recipes as shipped_recipes
    from ecg_gnn.study.records import Record as Record
    from ecg_gnn.study.records import RunFolder as RunFolder
    from ecg_gnn.study.selection import Cell as Cell
    from ecg_gnn.study.selection import Selection as Selection
    from ecg_gnn.study.selection import best_ecg as best_ecg
    from ecg_gnn.study.store import Store as Store
    from ecg_gnn.study.store import merge_stores as merge_stores
    from ecg_gnn.study.store import write_records as write_records
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)
