"""Recipes that run in a moment, stores filled by hand, and invented trainings."""

from dataclasses import replace

from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import BASELINE, canonical, unit_id, variant_of
from ecg_gnn.config.run_config import flatten, replaced
from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.grid import recipe_cells
from ecg_gnn.study.recipe import recipe_from_dict
from ecg_gnn.study.records import Result
from ecg_gnn.study.store import (
    Configuration,
    DatasetInfo,
    Failed,
    StoredUnit,
    StoreWriter,
)
from ecg_gnn_lab.report.details import command_parts
from small_runs import BOARD, STATISTICS

SMALL_RECIPE = {
    "datasets": [BOARD],
    "models": ["gcn", "sage"],
    "variants": ["baseline", "mlp", "bgrl", "identity", "random"],
    "splits": [0, 1],
    "settings": {
        "model.hidden": 8,
        "model.layers": 1,
        "embed.hidden": 8,
        "embed.layers": 1,
        "evolve.k": 3,
        "train.steps": 4,
    },
}


def small_recipe(name="small", **changed):
    """Twenty units of four steps each, unless changed."""
    settings = SMALL_RECIPE["settings"] | changed.pop("settings", {})
    return recipe_from_dict(SMALL_RECIPE | {"settings": settings} | changed, name)


def expand(recipe, only=None):
    """Every configuration of a recipe, checked as far as it can be without data."""
    return [plan for cell in recipe_cells(recipe, only) for plan in cell.plans()]


def numbers(store):
    """Everything that must come out again; times and machines left out."""
    return {
        record.id: (
            record.configuration.id,
            record.split,
            record.seed,
            record.result.val,
            record.result.test,
            record.result.best_step,
            record.result.evolved_statistics,
            store.curves(record.id).to_bytes(),
        )
        for record in store.records()
    }


def dataset_info(name="minesweeper", sha256=None, note="", **statistics):
    """A graph as a store knows it; by default the official one."""
    entry = CATALOGUE.get(name)
    return DatasetInfo(
        name=name,
        sha256=sha256 or (entry.sha256 if entry and entry.sha256 else "0" * 64),
        metric="roc_auc",
        note=note,
        num_nodes=10_000,
        num_edges=39_402,
        num_features=7,
        num_classes=2,
        statistics=dict.fromkeys(STATISTICS, 0.5) | statistics,
    )


class HandmadeStore:
    """Fills a store with results of trainings that never were."""

    def __init__(self, path):
        self.writer = StoreWriter.open(path)

    def add(
        self,
        tests,
        *,
        vals=None,
        dataset=None,
        model="gcn",
        embedding=None,
        numerics=9,
        task="train",
        recipe="by-hand",
        statistics=None,
        seeds=None,
        precision=None,
        **settings,
    ):
        """One configuration with a test score per split; None leaves it unfinished."""
        dataset = dataset or dataset_info()
        variant = BASELINE if embedding is None else variant_of(embedding)
        settings |= {"dataset": dataset.name, "model.name": model}
        config = canonical(replaced(RunConfig(), settings), variant, task)
        name = f"{dataset.name}-{model}-{embedding}-{sorted(settings.items())}-{task}"
        configuration = Configuration(
            id=f"{name}-{numerics}-{dataset.sha256}",
            task=task,
            dataset=dataset.name,
            dataset_sha256=dataset.sha256,
            variant=variant.name,
            embedding=embedding,
            numerics=numerics,
            config=config.to_dict(),
        )
        pairs = [(split, 0) for split in range(len(tests))] if seeds is None else seeds
        units = [
            StoredUnit(
                id=unit_id(configuration.id, split, seed),
                configuration=configuration,
                split=split,
                seed=seed,
            )
            for split, seed in pairs
        ]
        self.writer.register(recipe, [dataset], units)
        row = statistics or dict.fromkeys(STATISTICS, 0.25)
        for unit, test, val in zip(units, tests, vals or tests, strict=True):
            if test is not None:
                ended = result(test, val, variant, row, task)
                if precision:
                    ended.provenance["precision"] = precision
                self.writer.finish(unit.id, ended)
        return configuration


def result(test, val=None, variant=BASELINE, statistics=None, task="train"):
    trained = task == "train"
    return Result(
        val=(test if val is None else val) if trained else None,
        test=test if trained else None,
        best_step=7 if trained else None,
        seconds=1.5,
        peak_memory_mb=None,
        evolved_statistics=[statistics] * len(variant.graphs),
        provenance={"torch": "2.0"},
        losses=[0.5, None] if trained else [],
        val_scores=[0.25, 0.5] if trained else [],
        test_scores=[0.75, 1.0] if trained else [],
    )


class Killed(BaseException):
    """Ends a study as a signal would."""


class InventedScores:
    """An executor that trains nothing: a function of the settings gives the scores.

    Args:
        score: From the flat settings and the split to a validation score, or to an
            exception that is the unit's failure.
        dies_after: Units after which the whole study is killed.
    """

    def __init__(self, score, *, dies_after=None):
        self.score, self.dies_after = score, dies_after
        self.ran = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def pick_device(self, name):
        return "cpu"

    def run(self, groups):
        for group, runner in groups:
            for split in group.units:
                if len(self.ran) == self.dies_after:
                    raise Killed
                settings = flatten(runner.config)
                self.ran.append((settings, split))
                score = self.score(settings, split)
                yield group, split, self._outcome(group.variant, runner, score)

    def _outcome(self, variant, runner, score):
        if isinstance(score, Exception):
            return Failed("error", str(score))
        row = dict.fromkeys(STATISTICS, 0.25)
        undated = {k: v for k, v in runner.made_with.items() if k != "date"}
        return replace(result(0.5, score, variant, row), provenance=undated)


def run_command(configuration, split, seed=0):
    """The command that the report shows for one unit."""
    options, comment = command_parts(configuration)
    return f"{options} --splits {split} --seed {seed}{comment}"
