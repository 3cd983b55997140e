"""A search: Optuna proposes points of a grid, which are trained like any others.

Nothing is kept of it but records: the same store and seed give the same next point.
"""

import importlib.util
import statistics
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ecg_gnn.config.run_config import OPTION, Settings, declared, flatten
from ecg_gnn.config.setting import parse
from ecg_gnn.data import GraphDataset
from ecg_gnn.study.grid import Plan
from ecg_gnn.study.groups import Group, bind
from ecg_gnn.study.recipe import Range, Values
from ecg_gnn.study.store import Configuration
from ecg_gnn.study.table import full_name
from ecg_gnn.system import checks
from ecg_gnn.system.seeds import derive_seed

if TYPE_CHECKING:
    from ecg_gnn.study.execute import Trainer

_MAX_PROPOSALS = 10  # if all have been tried before, another sampler is asked
_ENDED = ("done", "pruned", "failed")


@dataclass(frozen=True, kw_only=True)
class Search:
    """How to search in every dataset, model and variant of a recipe."""

    trials: int  # points to try for each of them, including those of earlier calls
    sampler: str = "tpe"
    prune: bool = False  # whether to train split by split, and stop bad trials
    seed: int = 0

    def __post_init__(self) -> None:
        checks.check_choice("search", self.sampler, ("tpe",))
        if self.trials < 1:
            raise checks.InputError(
                "'trials' must be given with --search tpe, and at least 1, as in "
                f"--trials 20 (got {self.trials or 'none'})"
            )
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
        grid = plan.grid.items()
        tried = {n: (v.low, v.high) if isinstance(v, Range) else v for n, v in grid}
        first = {name: values[0] for name, values in tried.items()}
        for name, values in tried.items():
            for value in values:
                bind(plan.at({**first, name: value}), loaded, device)


@dataclass
class _Trial:
    """A point that is being tried, or was."""

    point: Settings
    groups: list[Group]
    scores: list[float] = field(default_factory=list)  # on validation, unit by unit
    state: str = "open"  # done, pruned or failed; or elsewhere: another process has it

    @property
    def id(self) -> str:
        return self.groups[0].configuration.id

    @property
    def val(self) -> float:
        """What the search maximises."""
        return statistics.fmean(self.scores)


@dataclass
class CellSearch:
    """The search in one dataset, model and variant."""

    trainer: "Trainer"
    plan: Plan
    loaded: Mapping[str, GraphDataset]
    device: str
    search: Search

    def __post_init__(self) -> None:
        plan, stored = self.plan, self.trainer.writer.configurations()
        self._graph = self.loaded[plan.settings["dataset"]]
        self._names: dict[str, Any] = {
            "dataset": self._graph.name,
            "model": str(plan.settings["model.name"]),
            "variant": plan.variant.embedding or plan.variant.name,
        }
        self._grid = {name: _as_stored(name, each) for name, each in plan.grid.items()}
        self._spaces = {name: _distribution(each) for name, each in self._grid.items()}
        self._order = {at: place for place, at in enumerate(stored)}
        self._trials = list(self._known(stored.values()))

    def run(self) -> CellSummary:
        """One trial after the other, those in the store first, until there are enough.

        Points that another process is training are left to it, and so is the rest.
        """
        import optuna

        with ExitStack() as quiet:
            quiet.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            quiet.callback(optuna.logging.set_verbosity, optuna.logging.get_verbosity())
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            for number, trial in enumerate(self._trials, 1):
                self._run(trial, number)
            while len(self._trials) < self.search.trials and (new := self._proposed()):
                self._trials.append(new)
                self._run(new, len(self._trials))
        states, best = Counter(trial.state for trial in self._trials), self._best
        ended: dict[str, Any] = {each: states[each] for each in _ENDED}
        ended |= {"best": best and best.point, "val": best and best.val}
        return CellSummary(**self._names, **ended)

    @property
    def _best(self) -> _Trial | None:
        done = [trial for trial in self._trials if trial.state == "done"]
        return max(done, key=lambda trial: trial.val, default=None)

    def _known(self, stored: Iterable[Configuration]) -> Iterator[_Trial]:
        """The points that this recipe has tried in earlier calls, in their order."""
        writer, recipe = self.trainer.writer, self.trainer.recipe
        recipes = writer.recipes_of_units()
        records = writer.records(recipe=recipe) if recipe in writer.recipes() else []
        made = [(r.configuration.id, r.result.provenance) for r in records]
        pruned = {at for at, how in made if "pruned" in how.get("search", ())}
        ours = self._graph.sha256, self.plan.variant.embedding
        for at in stored:
            if (at.dataset_sha256, at.embedding) != ours:
                continue
            flat = flatten(at.settings)
            flat |= {OPTION + key: v for key, v in flat["model.options"].items()}
            try:
                trial = self._trial({name: flat[name] for name in self._grid})
                self._told(trial)
            except (KeyError, ValueError):  # its settings are not in the grid
                continue
            units = _units(trial.groups)
            if trial.id == at.id and any(recipe in recipes.get(u, ()) for u in units):
                scored = writer.scores(units)
                if at.id in pruned and len(scored) < len(units):
                    trial.state = "pruned"
                    trial.groups = [group.only(scored) for group in trial.groups]
                yield trial

    def _trial(self, point: Settings) -> _Trial:
        return _Trial(point, bind(self.plan.at(point), self.loaded, self.device))

    def _told(self, trial: _Trial) -> Any:
        """A trial as Optuna knows it; a failed one is pruned without any score."""
        from optuna.trial import TrialState, create_trial

        done, scores = trial.state == "done", enumerate(trial.scores)
        return create_trial(
            state=TrialState.COMPLETE if done else TrialState.PRUNED,
            value=trial.val if done else None,
            params={  # places in a list are categories without order
                n: v if isinstance(values := self._grid[n], Range) else values.index(v)
                for n, v in trial.point.items()
            },
            distributions=self._spaces,
            intermediate_values={} if trial.state == "failed" else dict(scores),
        )

    def _study(self) -> Any:
        """Optuna's, with all that has ended in the order of the store."""
        import optuna

        study = optuna.create_study(direction="maximize")
        place = self._order.get
        in_order = sorted(self._trials, key=lambda t: place(t.id, len(self._order)))
        study.add_trials([self._told(t) for t in in_order if t.state in _ENDED])
        return study

    def _proposed(self) -> _Trial | None:
        """A point that has not been tried, TPE's if possible; None if it ends here."""
        from optuna.samplers import BruteForceSampler, TPESampler

        if any(trial.state == "elsewhere" for trial in self._trials):
            return None
        purpose = "search", *self._names.values(), len(self._trials)
        seed = derive_seed(self.search.seed, *purpose) % 2**32
        samplers: list[Any] = [TPESampler(seed=seed, multivariate=True)]
        if all(getattr(space, "step", True) for space in self._spaces.values()):
            samplers.append(BruteForceSampler(seed))  # what is left of a finite grid
        study, tried = self._study(), {trial.id for trial in self._trials}
        for study.sampler in samplers:
            for _ in range(_MAX_PROPOSALS):
                asked = study.ask(self._spaces).params.items()
                trial = self._trial({n: _value(self._grid[n], v) for n, v in asked})
                if trial.id not in tried:
                    return trial
        return None

    def _run(self, trial: _Trial, number: int) -> None:
        """Train what is missing of a trial, and say how it ended."""
        trainer, before = self.trainer, self.trainer.ran
        trial.state = self._trained(trial, number)
        if trainer.ran == before:
            return
        val = f", validation {100 * trial.val:.2f}" if trial.scores else ""
        if best := self._best:
            val += f" (best {100 * best.val:.2f} at {settings_text(best.point)})"
        trainer.say(
            f"{full_name(trial.groups[0].configuration)}: trial {number} of "
            f"{self.search.trials} {trial.state} after {len(trial.scores)} splits"
            f"{val}: {settings_text(trial.point)}"
        )

    def _trained(self, trial: _Trial, number: int) -> str:
        """The state of a trial; with pruning, unit by unit until it is hopeless."""
        from optuna.pruners import WilcoxonPruner

        trainer, search, units = self.trainer, self.search, _units(trial.groups)
        parts = [[g.only([unit])] for g in trial.groups for unit in g.units.values()]
        for part in parts if search.prune else [trial.groups]:
            trainer.register(part)  # only now: a pruned trial has no more units
            trainer.train(part, search={"sampler": search.sampler, "trial": number})
            wanted = _units(part)
            states = set(map(trainer.writer.state, wanted))
            known = trainer.writer.scores(units)  # of all that were done by then
            trial.scores += [known[unit] for unit in wanted if unit in known]
            if states - {"done"}:
                return "failed" if "failed" in states else "elsewhere"
            # Wilcoxon's paired test does not mistake hard splits for bad settings.
            left = search.prune and len(units) - len(known)
            if left and WilcoxonPruner().prune(self._study(), self._told(trial)):
                after, of = len(trial.scores), len(units)
                trainer.writer.mark_pruned(wanted[-1], after=after, of=of)
                return "pruned"
        return "pruned" if trial.state == "pruned" else "done"


def _units(groups: Sequence[Group]) -> list[str]:
    return [unit for group in groups for unit in group.units.values()]


def _as_stored(name: str, values: Values) -> Values:
    """Values of a list as the store has them: 0 as 0.0 where numbers are floats."""
    if isinstance(values, Range) or (declaration := declared().get(name)) is None:
        return values
    return tuple(parse(declaration.type, value, name) for value in values)


def _value(values: Values, asked: Any) -> Any:
    """A setting that Optuna asks for; its samplers round steps differently."""
    if not isinstance(values, Range):
        return values[asked]
    return round(asked, 12) if values.step else asked


def _distribution(values: Values) -> Any:
    from optuna import distributions as of

    if not isinstance(values, Range):
        return of.CategoricalDistribution(range(len(values)))
    whole = isinstance(values.low, int)
    kind: Any = of.IntDistribution if whole else of.FloatDistribution
    step = values.step or (1 if whole else None)
    return kind(values.low, values.high, log=values.log, step=step)


def settings_text(point: Settings) -> str:
    """Settings as people write them: ``train.lr=0.003, evolve.k=10``."""
    shown = {n: f"{v:.4g}" if isinstance(v, float) else v for n, v in point.items()}
    return ", ".join(f"{n}={v}" for n, v in shown.items()) or "no choice"
