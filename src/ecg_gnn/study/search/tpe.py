"""How to search: Optuna proposes what to try next, and prunes hopeless trials.

Optuna keeps nothing: its studies are made anew from the trials in the store.
"""

import importlib.util
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecg_gnn.config.dotted import Settings
from ecg_gnn.study.recipe import Grid, Range, Values
from ecg_gnn.study.search.trial import Trial
from ecg_gnn.system.checks import MissingExtraError, check_choice, check_in_range

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_NUM_SEEDS = 2**32  # numpy's


@dataclass(frozen=True, kw_only=True)
class Search:
    """How to search in every dataset, model and variant of a recipe."""

    trials: int
    """Points to try for each of them, including those of earlier calls"""
    sampler: str = "tpe"
    """What proposes points: a tree-structured Parzen estimator"""
    prune: bool = False
    """Whether to train split by split, and stop trials that are worse than the best"""
    seed: int = 0
    """Random seed of the proposals"""
    at_once: int = 1
    """Parallel trials; only with one are proposals reproducible"""

    def __post_init__(self) -> None:
        check_choice("search", self.sampler, ("tpe",))
        check_in_range("trials", self.trials, 1, None)
        check_in_range("search_seed", self.seed, 0, 2**62)
        check_in_range("at_once", self.at_once, 1, None)
        if importlib.util.find_spec("optuna") is None:
            raise MissingExtraError("optuna", "sweep", "--search tpe")

    def recipe_name(self, recipe: str) -> str:
        """The recipe's name in the store, which differs from that of its grid."""
        return f"{recipe}+{self.sampler}"


def propose(grid: Grid, trials: Sequence[Trial], seed: int) -> Settings:
    """A promising point, given all trials so far in their order.

    The same trials and the same seed give the same point. A failed trial counts as the
    worst of all; one that is under way is not proposed again.
    """
    import optuna

    spaces = {name: _distribution(values) for name, values in grid.items()}
    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=seed % _NUM_SEEDS, multivariate=True, constant_liar=True
        )
        study = _study(grid, trials, sampler)
        asked = study.ask(spaces).params
    return {name: _value(grid[name], asked[name]) for name in grid}


def is_hopeless(grid: Grid, trials: Sequence[Trial], trial: Trial) -> bool:
    """Whether a trial is worse than the best one on the splits that both have.

    Wilcoxon's paired test does not mistake hard splits for bad settings; no trial whose
    mean is above the best one's is hopeless.
    """
    import optuna

    with _quiet():
        pruner = optuna.pruners.WilcoxonPruner()
        done = [one for one in trials if one.state == "done"]
        return pruner.prune(_study(grid, done), _frozen(grid, trial))


def _study(
    grid: Grid,
    trials: Sequence[Trial],
    sampler: "optuna.samplers.BaseSampler | None" = None,
) -> "optuna.Study":
    import optuna

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials([_frozen(grid, trial) for trial in trials])
    return study


def _frozen(grid: Grid, trial: Trial) -> "FrozenTrial":
    from optuna.trial import TrialState, create_trial

    states = {
        "open": TrialState.RUNNING,
        "done": TrialState.COMPLETE,
        "pruned": TrialState.PRUNED,
        "failed": TrialState.PRUNED,  # without scores: the worst there is
    }
    state = trial.state
    return create_trial(
        state=states[state],
        value=trial.val if state == "done" else None,
        params={name: _param(grid[name], trial.point[name]) for name in grid},
        distributions={name: _distribution(grid[name]) for name in grid},
        intermediate_values={} if state == "failed" else trial.scores_by_place(),
    )


def _distribution(values: Values) -> "BaseDistribution":
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(tuple(map(json.dumps, values)))
    low, high, step = values.low, values.high, values.step
    if values.whole:
        return distributions.IntDistribution(
            int(low), int(high), log=values.log, step=int(step or 1)
        )
    return distributions.FloatDistribution(low, high, log=values.log, step=step)


def _param(values: Values, value: Any) -> Any:
    """A value as Optuna knows it: one of a list is a category without order."""
    return value if isinstance(values, Range) else json.dumps(value)


def _value(values: Values, param: Any) -> Any:
    if isinstance(values, Range):
        return param
    return values[list(map(json.dumps, values)).index(param)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's log lines and warnings about experimental features."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
