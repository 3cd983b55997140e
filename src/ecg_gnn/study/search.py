"""A search: Optuna proposes points of a grid, which are trained like any others.

Nothing is kept of a search but its records. Every call asks Optuna again from the
start; told the same scores, it proposes the same points, whose trainings are stored.
"""

import importlib.util
import itertools
import statistics
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ecg_gnn.config.run_config import Settings
from ecg_gnn.data import GraphDataset
from ecg_gnn.study.grid import Plan
from ecg_gnn.study.groups import Group, bind
from ecg_gnn.study.recipe import Range, Values
from ecg_gnn.study.table import full_name
from ecg_gnn.system import checks
from ecg_gnn.system.seeds import derive_seed

if TYPE_CHECKING:
    from ecg_gnn.study.execute import Trainer

_MAX_IN_VAIN = 100  # proposals that were tried before: the grid is at its end


@dataclass(frozen=True, kw_only=True)
class Search:
    """How to search in every dataset, model and variant of a recipe."""

    trials: int  # points to try for each of them, including those of earlier calls
    sampler: str = "tpe"
    prune: bool = False  # whether to train split by split, and stop bad trials
    seed: int = 0

    def __post_init__(self) -> None:
        checks.check_choice("search", self.sampler, ("tpe",))
        checks.check_in_range("trials", self.trials, 1, None)
        checks.check_in_range("search_seed", self.seed, 0, 2**62)
        if importlib.util.find_spec("optuna") is None:
            raise checks.MissingExtraError("optuna", "sweep", "--search tpe")


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """How far the search in one dataset, model and variant is."""

    dataset: str
    model: str
    variant: str
    done: int
    pruned: int
    failed: int
    best: Settings | None  # the point of the best trial that is done
    val: float | None


def check_grids(
    plans: Sequence[Plan], loaded: Mapping[str, GraphDataset], device: str
) -> None:
    """Refuse invalid values; if the ends of a range are valid, all of it is."""
    for plan in plans:
        if plan.task != "train":
            raise checks.InputError(
                f"'search' must be of a recipe with the task 'train' (got {plan.task})"
            )
        tried = {
            name: (values.low, values.high) if isinstance(values, Range) else values
            for name, values in plan.grid.items()
        }
        first = {name: values[0] for name, values in tried.items()}
        for name, values in tried.items():
            for value in values:
                bind(plan.at({**first, name: value}), loaded, device)


class _Trial(NamedTuple):
    """A point that has been tried."""

    point: Settings
    state: str  # done, pruned or failed; or elsewhere: another process has a unit
    scores: list[float]  # on validation, unit by unit, until it was stopped

    @property
    def val(self) -> float:
        """What the search maximises."""
        return statistics.fmean(self.scores)


def search_cell(
    trainer: "Trainer",
    plan: Plan,
    loaded: Mapping[str, GraphDataset],
    device: str,
    search: Search,
) -> CellSummary:
    """One trial after the other, until there are enough.

    It ends early when all points have been tried, or when another process is training
    one of them: the rest is left to that process.
    """
    from optuna.trial import TrialState

    variant = plan.variant.embedding or plan.variant.name
    graph = loaded[plan.settings["dataset"]].name
    names = graph, str(plan.settings["model.name"]), variant
    trials: list[_Trial] = []
    with _optuna_study(derive_seed(search.seed, "search", *names)) as study:
        proposals = _proposals(study, plan, loaded, device)
        for asked, point, groups in itertools.islice(proposals, search.trials):
            trial = _run(trainer, search, asked, len(trials) + 1, point, groups)
            if trial.state == "elsewhere":
                break
            trials.append(trial)
            done = trial.state == "done"
            # A failed trial is a pruned one to Optuna, which is worse than one done.
            state = TrialState.COMPLETE if done else TrialState.PRUNED
            study.tell(asked, trial.val if done else None, state)
            val = f", validation {100 * trial.val:.2f}" if trial.scores else ""
            trainer.say(
                f"{full_name(groups[0].configuration)}: trial {len(trials)} of "
                f"{search.trials} {trial.state} after {len(trial.scores)} splits{val}: "
                f"{settings_text(point)}"
            )
    states = Counter(trial.state for trial in trials)
    ended = [trial for trial in trials if trial.state == "done"]
    best = max(ended, key=lambda trial: trial.val, default=None)
    return CellSummary(
        dataset=names[0],
        model=names[1],
        variant=variant,
        done=states["done"],
        pruned=states["pruned"],
        failed=states["failed"],
        best=best and best.point,
        val=best and best.val,
    )


def _proposals(
    study: Any, plan: Plan, loaded: Mapping[str, GraphDataset], device: str
) -> Iterator[tuple[Any, Settings, list[Group]]]:
    """Points that have not been tried: as Optuna asks for them, settings and units.

    Places in a list are categories without order.
    """
    from optuna.trial import TrialState

    grid = plan.grid
    distributions = {name: _distribution(values) for name, values in grid.items()}
    tried: set[str] = set()
    in_vain = 0
    while in_vain < _MAX_IN_VAIN:
        asked = study.ask(distributions)
        point = {
            name: place if isinstance(values := grid[name], Range) else values[place]
            for name, place in asked.params.items()
        }
        groups = bind(plan.at(point), loaded, device)
        if (at := groups[0].configuration.id) not in tried:
            tried.add(at)
            in_vain = 0
            yield asked, point, groups
        else:
            in_vain += 1
            study.tell(asked, state=TrialState.FAIL)  # which Optuna forgets


def _run(
    trainer: "Trainer",
    search: Search,
    asked: Any,
    number: int,
    point: Settings,
    groups: list[Group],
) -> _Trial:
    """Train a point; with pruning one unit at a time, until it is hopeless."""
    units = [(group, unit) for group in groups for unit in group.units.values()]
    parts = [[group.only([unit])] for group, unit in units]
    writer, scores = trainer.writer, list[float]()
    for part in parts if search.prune else [groups]:
        trainer.register(part)  # only now: a pruned trial has no more units
        trainer.train(part, search={"sampler": search.sampler, "trial": number})
        wanted = [unit for group in part for unit in group.units.values()]
        states = {writer.state(unit) for unit in wanted}
        known = writer.scores([unit for _, unit in units])
        scores += [known[unit] for unit in wanted if unit in known]
        if states != {"done"}:
            state = "failed" if "failed" in states else "elsewhere"
            return _Trial(point, state, scores)
        if search.prune:
            asked.report(scores[-1], step=len(scores))
            if len(known) < len(units) and asked.should_prune():
                writer.mark_pruned(wanted[-1], after=len(scores), of=len(units))
                return _Trial(point, "pruned", scores)
    return _Trial(point, "done", scores)


@contextmanager
def _optuna_study(seed: int) -> Iterator[Any]:
    """Optuna's, without its log lines and its warnings."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # Wilcoxon's paired test does not mistake hard splits for bad settings.
            yield optuna.create_study(
                direction="maximize",
                sampler=optuna.samplers.TPESampler(
                    seed=seed % 2**32, multivariate=True
                ),
                pruner=optuna.pruners.WilcoxonPruner(),
            )
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(values: Values) -> Any:
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(range(len(values)))
    low, high, step = values.low, values.high, values.step
    if isinstance(low, int):
        return distributions.IntDistribution(
            int(low), int(high), log=values.log, step=int(step or 1)
        )
    return distributions.FloatDistribution(low, high, log=values.log, step=step)


def settings_text(point: Settings) -> str:
    """Settings as people write them: ``train.lr=0.003, evolve.k=10``."""
    forms = {name: ".4g" if isinstance(point[name], float) else "" for name in point}
    parts = [f"{name}={format(point[name], form)}" for name, form in forms.items()]
    return ", ".join(parts) or "no choice"
