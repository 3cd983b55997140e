"""``ecg-gnn study run``: train a recipe's grid, or search it, here or on a cluster."""

import sys
import time
from collections.abc import Collection, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import ProgressDisplay, print_json
from ecg_gnn.config.classify_settings import read_assignments
from ecg_gnn.config.run_config import Settings, read_splits
from ecg_gnn.study.recipe import load_recipe, shipped_recipes
from ecg_gnn.study.store import Failed
from ecg_gnn.study.table import configuration_name, model_name
from ecg_gnn.system.checks import InputError, check_choice, duration

if TYPE_CHECKING:
    from ecg_gnn.study.execute import Ended, StudyReport
    from ecg_gnn.study.groups import Counts
    from ecg_gnn.study.search_space import Search


class StudyLines:
    """Shows what a study reports, line by line."""

    def __init__(self, display: ProgressDisplay, trials: int | None) -> None:
        self.display, self.trials = display, trials
        self.started = time.monotonic()

    def counted(self, counts: "Counts") -> None:
        """How many units there are before anything runs."""
        self.started = time.monotonic()
        text = f"{counts.total} units: {counts.done} done"
        text += f", {counts.failed} failed" if counts.failed else ""
        text += f", {counts.running} running elsewhere" if counts.running else ""
        self.display.say(text)

    def skipped(self, dataset: str, reason: str) -> None:
        """A dataset that is not here."""
        self.display.say(
            f"skipping {dataset}: {reason} (--datasets {dataset} would fetch it or "
            "say how to)"
        )

    def ended(self, ended: "Ended") -> None:
        """One line per unit."""
        at = ended.group.configuration
        model = f"{model_name(at.backbone, at.model)} " if at.task == "train" else ""
        name = f"{at.dataset} {model}{configuration_name(at)}"
        seconds = max(time.monotonic() - self.started, 1e-9)
        rate = 60 * ended.ran / seconds
        left = duration(ended.left * seconds / ended.ran)
        seed = f" seed {ended.group.config.seed}" if ended.group.config.seed else ""
        self.display.say(
            f"[{ended.total - ended.left}/{ended.total}] {name} split {ended.split}"
            f"{seed}: {_result_text(ended)} · {rate:.1f} a minute, {left} left"
        )
        if (trial := ended.trial) is not None:
            val = "" if trial.val is None else f", validation {100 * trial.val:.2f}"
            best = "" if trial.best is None else f" (best {100 * trial.best:.2f})"
            self.display.say(
                f"{name}: trial {trial.number + 1} of {self.trials} {trial.state} "
                f"after {len(trial.scores)} splits{val}{best}: "
                f"{settings_text(trial.point)}"
            )


def _result_text(ended: "Ended") -> str:
    outcome = ended.outcome
    if isinstance(outcome, Failed):
        return f"failed ({outcome.kind}): {outcome.error.splitlines()[-1]}"
    if outcome.test is None:
        homophily = outcome.evolved_statistics[0]["edge_homophily"]
        shown = "undefined" if homophily is None else f"{homophily:.3f}"
        return f"h_edge {shown} ({outcome.seconds:.1f} s)"
    test, step = 100 * outcome.test, outcome.best_step
    return f"test {test:.2f} at step {step} ({outcome.seconds:.1f} s)"


def settings_text(point: Settings) -> str:
    """Settings as people write them: ``train.lr=0.003, evolve.k=10``."""
    forms = {name: ".4g" if isinstance(point[name], float) else "" for name in point}
    parts = [f"{name}={format(point[name], form)}" for name, form in forms.items()]
    return ", ".join(parts) or "no choice"


@opt.verb(recipes=", ".join(shipped_recipes()))
def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE")],
    store: Path,
    datasets: list[str] | None = None,
    models: list[str] | None = None,
    variants: list[str] | None = None,
    splits: str | None = None,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    search: str | None = None,
    trials: int | None = None,
    prune: bool = False,
    at_once: int = 1,
    search_seed: int = 0,
    device: str | None = None,
    data_root: Path | None = None,
    set_: list[str] | None = None,
    retry_failed: bool = False,
    json_: bool = False,
) -> None:
    """Run the parts of a recipe that are not in the store yet.

    If interrupted, rerun the command to resume: finished trainings are never lost or
    repeated. Several commands may fill one store at once, and stores from different
    machines can be merged. A failed training is kept with its error and does not stop
    the rest.

    Options:
        recipe: One of {recipes}, or a YAML file of your own.
        datasets: Only these datasets of the recipe, downloaded if needed; without it,
            datasets that are not here are skipped. Repeat it, or write a,b.
        models: Only these models of the recipe.
        variants: Only these variants: baseline, an embedding, a control. Repeat it, or
            write a,b (one variant if the recipe has a variant a,b of two graphs).
        splits: Such as 0-9 or 0,3,5, instead of the recipe's.
        jobs: Parallel trainings, each in its own process.
        engine: Where trainings run: local (this machine) or ray (a Ray cluster, one
            started here unless --address names another).
        address: A running Ray cluster: HOST:PORT, or auto for one here.
        search: Search the grid instead of trying all of it: tpe proposes --trials
            points for each dataset, model and variant, by their validation scores.
        trials: Points to try in each search, including earlier calls.
        prune: In a search, train split by split and stop trials that are worse than the
            best on the same splits (a paired test, from four splits on).
        at_once: Parallel trials of one search; more than one keep a cluster busy, but
            then proposals depend on which trial ends first.
        search_seed: Random seed of a search.
        set_: A setting by its dotted name in every run, whatever the recipe says:
            train.precision=bf16, train.steps=100. Repeatable.
        retry_failed: Repeat units that failed.
    """
    asked = load_recipe(recipe).with_settings(read_assignments(set_ or []))
    check_choice("engine", engine, ["local", "ray"])
    if engine == "local" and address is not None:
        raise InputError(
            f"'address' must be given with --engine ray (got {address!r} without it)"
        )
    from ecg_gnn.study.execute import Listeners, run_study
    from ecg_gnn.study.executors import Executor
    from ecg_gnn.study.grid import Only
    from ecg_gnn.study.ray_executor import RayExecutor

    only = Only(
        datasets=_names(datasets),
        models=_names(models),
        variants=_names(variants, {v for part in asked.parts for v in part.variants}),
        splits=None if splits is None else read_splits(splits),
    )
    searched = _search(search, trials, prune, at_once, search_seed)
    # Ray prints warnings on stdout, which is for results.
    with ProgressDisplay() as display, redirect_stdout(sys.stderr):
        lines = StudyLines(display, trials)
        executor = Executor(jobs)
        if engine == "ray":
            executor = RayExecutor(jobs=jobs, address=address, on_lost=display.say)
        report = run_study(
            asked,
            store,
            only=only,
            search=searched,
            data_root=data_root,
            device=device or "auto",
            executor=executor,
            cache=opt.default_cache(),
            retry_failed=retry_failed,
            command=" ".join(["ecg-gnn", *sys.argv[1:]]),
            listeners=Listeners(
                progress=display.start,
                ended=lines.ended,
                skipped=lines.skipped,
                counted=lines.counted,
            ),
        )
    if json_:
        print_json({**asdict(report), "store": str(store)})
    else:
        _print_report(report, store)


def _search(
    sampler: str | None, trials: int | None, prune: bool, at_once: int, seed: int
) -> "Search | None":
    if sampler is not None:
        if trials is None:
            raise InputError("'trials' must be given with --search (got none)")
        from ecg_gnn.study.search_space import Search

        return Search(
            sampler=sampler, trials=trials, prune=prune, at_once=at_once, seed=seed
        )
    given = {"trials": trials, "prune": prune, "search_seed": seed}
    given["at_once"] = at_once != 1
    for name in (name for name, value in given.items() if value):
        raise InputError(f"{name!r} must be given with --search tpe (got no search)")
    return None


def _names(
    values: Sequence[str] | None, known: Collection[str] = ()
) -> list[str] | None:
    """Names given one by one or with commas, which a name may also contain.

    Generators, paths and known variants of two graphs may contain commas.
    """
    names: list[str] = []
    for value in values or ():
        compact = value.replace(" ", "")
        one = compact in known or ":" in value or "/" in value
        names += [compact if compact in known else value] if one else value.split(",")
    return [name.strip() for name in names] or None


def _print_report(report: "StudyReport", store: Path) -> None:
    counts = report.counts
    parts = [f"{counts.done} of {counts.total} done", f"{report.ran} of them now"]
    if counts.failed:
        hint = "study status --errors shows why, study run --retry-failed tries again"
        parts.append(f"{counts.failed} failed ({hint})")
    if counts.running:
        parts.append(f"{counts.running} running in other processes")
    print(f"{report.recipe}: {', '.join(parts)}. Records: {store}")
    for cell in report.searched:
        ended = [f"{cell.done} trials done"]
        ended += [f"{cell.pruned} pruned"] if cell.pruned else []
        ended += [f"{cell.failed} failed"] if cell.failed else []
        best = "" if cell.best is None else f", best {settings_text(cell.best)}"
        val = "" if cell.val is None else f" (validation {100 * cell.val:.2f})"
        names = f"{cell.dataset} {cell.model} {cell.variant}"
        print(f"{names}: {', '.join(ended)}{best}{val}")
