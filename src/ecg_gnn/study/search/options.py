"""How settings are searched for."""

from dataclasses import dataclass

from ecg_gnn.study.search.tpe import require_optuna
from ecg_gnn.system.checks import check_choice, check_in_range

SAMPLERS = ("tpe",)


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search in every dataset, model and variant of a recipe."""

    trials: int
    """Points to try for each of them, those of earlier calls included"""
    sampler: str = "tpe"
    """Who proposes points: a tree-structured Parzen estimator"""
    prune: bool = False
    """Whether to train split by split, and give up what is worse than the best"""
    seed: int = 0
    """Determines what is proposed, together with what has been found"""
    at_once: int = 1
    """Trials under way at a time; with one alone everything is determined"""

    def __post_init__(self) -> None:
        check_choice("search", self.sampler, SAMPLERS)
        check_in_range("trials", self.trials, 1, None)
        check_in_range("search_seed", self.seed, 0, 2**62)
        check_in_range("at_once", self.at_once, 1, None)
        require_optuna()

    def recipe_name(self, recipe: str) -> str:
        """What the store calls the trials: a grid of the same recipe is another one."""
        return f"{recipe}+{self.sampler}"
