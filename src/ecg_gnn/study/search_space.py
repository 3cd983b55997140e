"""Where to search, what Optuna proposes to try there next, and what it prunes.

Optuna keeps nothing: its studies are made anew from the trials in the store.
"""

import importlib.util
import itertools
import statistics
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from ecg_gnn.config import RunConfig
from ecg_gnn.config.run_config import OPTION, Settings, flatten
from ecg_gnn.data import GraphDataset
from ecg_gnn.study.grid import RecipeCell
from ecg_gnn.study.groups import Group, bind
from ecg_gnn.study.recipe import Grid, Range, Values
from ecg_gnn.study.store import Configuration
from ecg_gnn.system import checks


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """A cell of a recipe on its graph; points are settings of its grid."""

    cell: RecipeCell  # its grid has every value as the store writes it
    graph: GraphDataset
    device: str
    num_units: int = 0  # trainings of one point: splits times seeds

    @property
    def names(self) -> tuple[str, str, str]:
        """Dataset, model and variant, for seeds and for people."""
        model, variant = str(self.cell.fixed["model.name"]), self.cell.variant
        return self.graph.name, model, variant.embedding or variant.name

    def groups(self, point: Settings) -> list[Group]:
        """The units of a point: one group per seed."""
        loaded = {self.cell.dataset: self.graph}
        return bind(self.cell.plan(point), loaded, self.device)

    def with_stored_values(self) -> "SearchSpace":
        """The same space, its grid as the store writes it; refuses invalid values."""
        grid = dict(self.cell.grid)
        # If the ends of a range are valid, all of it is.
        tried = {
            n: (v.low, v.high) if isinstance(v, Range) else v for n, v in grid.items()
        }
        first = {name: values[0] for name, values in tried.items()}
        for name, values in tried.items():
            groups = [self.groups({**first, name: value})[0] for value in values]
            stored = [_setting(group.configuration, name) for group in groups]
            if not isinstance(grid[name], Range):
                grid[name] = tuple({repr(value): value for value in stored}.values())
        num_units = sum(len(group.units) for group in self.groups(first))
        return replace(self, cell=replace(self.cell, grid=grid), num_units=num_units)

    def point_of(self, configuration: Configuration) -> Settings | None:
        """The point that a stored configuration is at; None if at none."""
        at, variant, grid = configuration, self.cell.variant, self.cell.grid
        ours = (self.cell.task, self.graph.sha256, variant.name, variant.embedding)
        if (at.task, at.dataset_sha256, at.variant, at.embedding) != ours:
            return None
        point = {name: _setting(at, name) for name in grid}
        is_in_grid = all(point[name] in values for name, values in grid.items())
        if not is_in_grid or self.groups(point)[0].configuration.id != at.id:
            return None
        return point

    def all_points(self) -> Iterator[Settings]:
        """Every point in order if their number is finite; otherwise none."""
        lists: list[Iterable[Any]] = []
        for values in self.cell.grid.values():
            if not isinstance(values, Range):
                lists.append(values)
            elif values.whole:  # a step is never given with a log scale
                low, high, step = values.low, values.high, values.step or 1
                lists.append(range(int(low), int(high) + 1, int(step)))
            else:
                return
        for point in itertools.product(*lists):
            yield dict(zip(self.cell.grid, point, strict=True))


def search_spaces(
    cells: Sequence[RecipeCell], loaded: Mapping[str, GraphDataset], device: str
) -> list[SearchSpace]:
    """Where to search: cells whose graphs are loaded, every value of a grid checked."""
    spaces = []
    for cell in cells:
        if cell.task != "train":
            raise checks.InputError(
                f"'search' must be of a recipe with the task 'train' (got {cell.task})"
            )
        if (graph := loaded.get(cell.dataset)) is not None:
            space = SearchSpace(cell=cell, graph=graph, device=device)
            spaces.append(space.with_stored_values())
    return spaces


def _setting(configuration: Configuration, name: str) -> Any:
    settings = flatten(RunConfig.from_dict(configuration.config))
    if name.startswith(OPTION):
        return settings["model.options"].get(name.removeprefix(OPTION))
    return settings[name]


State = Literal["open", "done", "failed", "pruned"]


@dataclass
class Trial:
    """A point with its units, seed by seed and split by split; units are ids."""

    number: int
    point: Settings
    groups: Sequence[Group]
    scores: dict[str, float] = field(default_factory=dict)  # on validation, by unit
    failed: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)  # in other processes
    pruned: bool = False
    best: float | None = None  # when it ended: of the trials done until then

    @property
    def configuration(self) -> str:
        """The id of the point's configuration."""
        return self.groups[0].configuration.id

    @cached_property
    def units(self) -> list[str]:
        """All of them, in the order in which they are run."""
        return [unit for group in self.groups for unit in group.units.values()]

    @property
    def state(self) -> State:
        """How it ended; after a failure it cannot be compared any more."""
        if self.pruned or self.failed:
            return "pruned" if self.pruned else "failed"
        return "done" if len(self.scores) == len(self.units) else "open"

    @property
    def val(self) -> float | None:
        """Mean validation score so far: what the search maximises."""
        return statistics.fmean(self.scores.values()) if self.scores else None

    def next_group(self, *, one_by_one: bool) -> Group | None:
        """The next units to run, of one group, or a single one, if there are any."""
        if self.state != "open" or self.elsewhere or (one_by_one and self.in_flight):
            return None
        begun = {*self.scores, *self.failed, *self.in_flight}
        for group in self.groups:
            if missing := [unit for unit in group.units.values() if unit not in begun]:
                return group.only(missing[:1] if one_by_one else missing)
        return None


@dataclass(frozen=True, kw_only=True)
class Search:
    """How to search in every dataset, model and variant of a recipe."""

    trials: int  # points to try for each of them, including those of earlier calls
    sampler: str = "tpe"
    prune: bool = False  # whether to train split by split, and stop bad trials
    seed: int = 0
    at_once: int = 1  # parallel trials; only with one are proposals reproducible

    def __post_init__(self) -> None:
        checks.check_choice("search", self.sampler, ("tpe",))
        checks.check_in_range("trials", self.trials, 1, None)
        checks.check_in_range("search_seed", self.seed, 0, 2**62)
        checks.check_in_range("at_once", self.at_once, 1, None)
        if importlib.util.find_spec("optuna") is None:
            raise checks.MissingExtraError("optuna", "sweep", "--search tpe")


def propose(grid: Grid, trials: Sequence[Trial], seed: int) -> Settings:
    """A promising point, given all trials so far in their order.

    The same trials and the same seed give the same point. A failed trial counts as the
    worst of all; one that is under way is not proposed again.
    """
    with _study(grid, trials, seed) as study:
        spaces = {name: _distribution(values) for name, values in grid.items()}
        params = study.ask(spaces).params
    return {
        name: params[name] if isinstance(values, Range) else values[params[name]]
        for name, values in grid.items()
    }


def is_hopeless(grid: Grid, trials: Sequence[Trial], trial: Trial) -> bool:
    """Whether a trial is worse than the best one on the splits that both have.

    Wilcoxon's paired test does not mistake hard splits for bad settings; no trial whose
    mean is above the best one's is hopeless.
    """
    if trial.state != "open":
        return False
    from optuna.pruners import WilcoxonPruner

    with _study(grid, [t for t in trials if t.state == "done"]) as study:
        return WilcoxonPruner().prune(study, _frozen(grid, trial))


@contextmanager
def _study(grid: Grid, trials: Sequence[Trial], seed: int = 0) -> Iterator[Any]:
    """Optuna's, without its log lines and warnings about experimental features."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=seed % 2**32, multivariate=True, constant_liar=True
            )
            study = optuna.create_study(direction="maximize", sampler=sampler)
            study.add_trials([_frozen(grid, trial) for trial in trials])
            yield study
    finally:
        optuna.logging.set_verbosity(before)


def _frozen(grid: Grid, trial: Trial) -> Any:
    """A trial as Optuna knows it: places in a list are categories without order.

    One that failed is pruned without scores: the worst there is.
    """
    from optuna.trial import TrialState, create_trial

    states = {"open": TrialState.RUNNING, "done": TrialState.COMPLETE}
    params = dict(trial.point)
    for name, values in grid.items():
        if not isinstance(values, Range):
            params[name] = values.index(params[name])
    scores = {trial.units.index(unit): val for unit, val in trial.scores.items()}
    return create_trial(
        state=states.get(trial.state, TrialState.PRUNED),
        value=trial.val if trial.state == "done" else None,
        params=params,
        distributions={name: _distribution(values) for name, values in grid.items()},
        intermediate_values={} if trial.state == "failed" else scores,
    )


def _distribution(values: Values) -> Any:
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(range(len(values)))
    low, high, step = values.low, values.high, values.step
    if values.whole:
        return distributions.IntDistribution(
            int(low), int(high), log=values.log, step=int(step or 1)
        )
    return distributions.FloatDistribution(low, high, log=values.log, step=step)
