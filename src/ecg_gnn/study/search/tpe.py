"""Optuna's part: what to try next, and what is not worth finishing.

Optuna keeps nothing. Its studies are made from trials as they are needed, so that
everything it knows is what the store knows.
"""

import importlib.util
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ecg_gnn.config.dotted import Settings
from ecg_gnn.study.ranges import Range
from ecg_gnn.study.recipe import Grid
from ecg_gnn.study.search.trial import Trial
from ecg_gnn.system.checks import MissingExtraError

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_SEEDS = 2**32  # numpy's


def require_optuna() -> None:
    """Refuse to search where Optuna is not installed."""
    if importlib.util.find_spec("optuna") is None:
        raise MissingExtraError("optuna", "sweep", "--search tpe")


def propose(tried: Grid, trials: Sequence[Trial], seed: int) -> Settings:
    """A promising point, given all trials so far in their order.

    The same trials and the same seed give the same point. A trial that failed counts as
    worse than all others, one that is under way as not worth trying again.
    """
    import optuna

    spaces = {name: _distribution(values) for name, values in tried.items()}
    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=seed % _SEEDS, multivariate=True, constant_liar=True
        )
        study = _study(tried, trials, sampler)
        asked = study.ask(spaces).params
    return {name: _value(tried[name], asked[name]) for name in tried}


def is_hopeless(tried: Grid, trials: Sequence[Trial], trial: Trial) -> bool:
    """Whether a trial is worse than the best one on the splits that both have.

    A paired test (Wilcoxon's) does not mistake hard splits for bad settings; nothing is
    hopeless while its mean is above the best one's.
    """
    import optuna

    with _quiet():
        pruner = optuna.pruners.WilcoxonPruner()
        done = [one for one in trials if one.state == "done"]
        return pruner.prune(_study(tried, done), _frozen(tried, trial))


def _study(
    tried: Grid,
    trials: Sequence[Trial],
    sampler: "optuna.samplers.BaseSampler | None" = None,
) -> "optuna.Study":
    import optuna

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials([_frozen(tried, trial) for trial in trials])
    return study


def _frozen(tried: Grid, trial: Trial) -> "FrozenTrial":
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
        params={name: _param(tried[name], trial.point[name]) for name in tried},
        distributions={name: _distribution(tried[name]) for name in tried},
        intermediate_values={} if state == "failed" else trial.per_unit(),
    )


def _distribution(values: tuple[Any, ...] | Range) -> "BaseDistribution":
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(tuple(map(json.dumps, values)))
    low, high, step = values.low, values.high, values.step
    if values.whole:
        return distributions.IntDistribution(
            int(low), int(high), log=values.log, step=int(step or 1)
        )
    return distributions.FloatDistribution(low, high, log=values.log, step=step)


def _param(values: tuple[Any, ...] | Range, value: Any) -> Any:
    """A value as Optuna knows it: one of a list is a word without order."""
    return value if isinstance(values, Range) else json.dumps(value)


def _value(values: tuple[Any, ...] | Range, param: Any) -> Any:
    if isinstance(values, Range):
        return param
    return values[list(map(json.dumps, values)).index(param)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Neither lines about studies that nobody sees nor warnings about experiments."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
