"""Searches: asked and told from the store alone, pruned in pairs, never selected."""

import math
import os

import pytest

from ecg_gnn.study import Only, Selection, Store, run_study
from ecg_gnn.study.recipe import recipe_from_dict
from ecg_gnn.study.search import Search
from ecg_gnn.study.store import reader, writer
from ecg_gnn.study.store.writer import StoreWriter
from ecg_gnn.system.checks import InputError
from small_studies import SMALL_RECIPE, InventedScores, Killed

pytest.importorskip("optuna")

LR = {"low": 1e-5, "high": "1e-1", "log": True}
HARD = [0.5, 0.4, 0.3, 0.0, 0.0, 0.0]
"""What every configuration loses on each split: the first ones are hard."""


def recipe(**changed):
    """Learning rates and neighbours to look for; only the variant mlp has both."""
    grid = {"train.lr": LR, "evolve.k": {"low": 2, "high": 20}}
    values = SMALL_RECIPE | {"models": ["gcn"], "variants": ["mlp"], "grid": grid}
    values |= changed
    fixed = SMALL_RECIPE["settings"].items()
    settings = {name: value for name, value in fixed if name not in values["grid"]}
    return recipe_from_dict(values | {"settings": settings}, "space")


def score(settings, split):
    """Best at a learning rate of 0.001 and seven neighbours, on every split."""
    off = abs(math.log10(settings["train.lr"]) + 3) / 4
    return 0.9 - 0.3 * off - 0.01 * abs(settings["evolve.k"] - 7) - HARD[split] / 4


@pytest.fixture
def searched(tmp_path):
    """Search into a store, and give the report and what was asked of the executor."""

    def call(name="s.sqlite", trials=8, how=score, asked=None, **options):
        rest = {k: options.pop(k) for k in ("dies_after",) if k in options}
        run = {k: options.pop(k) for k in ("retry_failed", "say") if k in options}
        executor = InventedScores(how, **rest)
        report = run_study(
            asked or recipe(),
            tmp_path / name,
            search=Search(trials=trials, **options),
            executor=executor,
            **run,
        )
        return report, executor

    call.path = tmp_path
    return call


def records(path):
    """Every record in the store's order: what was tried, and what came of it."""
    with Store.open(path) as store:
        return [
            (r.configuration.id, r.split, r.seed, r.result.val, r.result.provenance)
            for r in store.records()
        ]


def test_a_search_finds_what_is_good(searched):
    report, executor = searched(trials=24, seed=2)
    (cell,) = report.searched
    assert (cell.done, cell.pruned, cell.failed) == (24, 0, 0)
    assert (report.recipe, report.ran, report.counts.total) == ("space+tpe", 48, 48)
    means = [score(settings, 0) for settings, split in executor.ran if split == 0]
    assert cell.val == pytest.approx(max(means) - (HARD[1] - HARD[0]) / 8)
    assert cell.val > 0.75
    # What has been found is made use of: the second half is better than the first.
    assert sum(means[12:]) > sum(means[:12]) + 0.25


def test_the_seed_determines_everything(searched):
    tried = [
        [settings["train.lr"] for settings, _ in searched(name, seed=seed)[1].ran]
        for name, seed in (("a.sqlite", 3), ("b.sqlite", 3), ("c.sqlite", 4))
    ]
    assert tried[0] == tried[1]
    assert set(tried[0]).isdisjoint(tried[2])


@pytest.mark.parametrize(
    ("prune", "dies_after"), [(False, 7), (True, 1), (True, 9), (True, 16)]
)
def test_killed_and_resumed_is_as_if_never_killed(
    searched, monkeypatch, prune, dies_after
):
    asked = recipe(splits=list(range(5)), variants=["baseline", "mlp"])
    options = {"trials": 3, "prune": prune, "asked": asked}
    uninterrupted, _ = searched("whole.sqlite", **options)
    assert prune == any(cell.pruned for cell in uninterrupted.searched)
    with monkeypatch.context() as dead:  # it gives nothing back, and lives no more
        dead.setattr(StoreWriter, "release", lambda self: None)
        with pytest.raises(Killed):
            searched("killed.sqlite", dies_after=dies_after, **options)
    monkeypatch.setattr(reader, "owner_of", lambda pid: "nobody")
    report, executor = searched("killed.sqlite", **options)
    whole = records(searched.path / "whole.sqlite")
    assert records(searched.path / "killed.sqlite") == whole
    assert len(executor.ran) == report.ran == len(whole) - dies_after
    again, _ = searched("killed.sqlite", **options)
    assert (again.ran, again.searched) == (0, report.searched)


def test_more_trials_go_on_from_those_that_are_there(searched):
    searched("whole.sqlite", trials=14)
    searched("parts.sqlite", trials=5)
    report, executor = searched("parts.sqlite", trials=14)
    assert (report.ran, len(executor.ran)) == (18, 18)
    whole = records(searched.path / "whole.sqlite")
    assert records(searched.path / "parts.sqlite") == whole


def test_a_grid_that_ends_is_searched_to_its_end(searched):
    asked = recipe(
        grid={"evolve.k": {"low": 3, "high": 4}, "model.dropout": [0, 0.5]},
        variants=["mlp", "identity"],
    )
    report, executor = searched(trials=9, asked=asked)
    of_mlp, of_identity = report.searched
    assert (of_mlp.done, of_identity.done) == (4, 2)  # identity has no neighbours
    assert report.counts.total == report.counts.done == len(executor.ran) == 12


def test_a_finite_grid_is_searched_completely(searched):
    grid = {
        "model.dropout": [0, 0.1, 0.2, 0.3, "4e-1"],
        "train.lr": [1e-4, "1e-3", 3e-3, 0.01, 0.1],
    }
    asked = recipe(grid=grid, splits=[0])

    def how(settings, split):
        return 0.9 - settings["model.dropout"] - settings["train.lr"]

    report, executor = searched(trials=11, asked=asked, how=how)
    assert report.searched[0].done == 11
    report, more = searched(trials=40, asked=asked, how=how)
    tried = {(at["model.dropout"], at["train.lr"]) for at, _ in executor.ran + more.ran}
    assert len(tried) == len(executor.ran + more.ran) == report.searched[0].done == 25
    steps = {"model.dropout": {"low": 0, "high": 0.6, "step": 0.1}}
    asked = recipe(grid=steps, splits=[0])
    report, executor = searched("steps.sqlite", trials=40, asked=asked, how=how)
    assert len(executor.ran) == report.searched[0].done == 7


def test_trials_in_the_store_count_whatever_is_proposed_now(searched):
    report, _ = searched(trials=6)
    again, executor = searched(trials=6, seed=1)
    assert (executor.ran, again.searched) == ([], report.searched)
    more, executor = searched(trials=8, seed=1)
    assert (len(executor.ran), more.searched[0].done) == (4, 8)
    assert more.searched[0].val >= report.searched[0].val


def test_trials_count_after_failures_were_retried(searched):
    failing = [True]

    def fails_at_first(settings, split):
        high = failing[0] and settings["train.lr"] > 1e-3
        return ZeroDivisionError("once") if high else score(settings, split)

    report, executor = searched(trials=14, how=fails_at_first)
    (cell,), failing[0] = report.searched, False
    assert cell.failed > 0
    assert cell.failed + cell.done == 14
    again, executor = searched(trials=14, how=fails_at_first, retry_failed=True)
    assert (len(executor.ran), again.searched[0].done) == (2 * cell.failed, 14)


def test_what_was_pruned_counts_without_pruning_and_with_another_seed(searched):
    options = {"trials": 12, "asked": recipe(splits=list(range(6)))}
    report, _ = searched(prune=True, **options)
    assert report.searched[0].pruned > 0
    again, executor = searched(seed=1, **options)
    assert (executor.ran, again.searched) == ([], report.searched)
    assert again.counts == report.counts


def test_no_time_left_is_foretold_and_the_best_is_named(searched):
    said = []
    searched(trials=2, say=said.append)
    assert not any(" left" in line for line in said)
    assert " (best " in said[-1]


def test_what_a_grid_has_trained_is_not_trained_again(searched):
    def more_is_better(settings, split):
        return settings["model.dropout"]

    asked = recipe(grid={"model.dropout": [0.1, 0.2, 0.3]})
    path, executor = searched.path / "s.sqlite", InventedScores(more_is_better)
    run_study(asked, path, only=Only(splits=(0,)), executor=executor)
    report, executor = searched(trials=3, asked=asked, how=more_is_better)
    assert [split for _, split in executor.ran] == [1, 1, 1]
    assert report.searched[0].done == 3
    again, _ = searched(trials=3, asked=asked)
    assert (again.ran, again.searched) == (0, report.searched)


def test_every_seed_counts(searched):
    asked = recipe(seeds=[0, 5])
    by_seed = {0: 0.2, 5: 0.6}
    report, executor = searched(
        trials=2, asked=asked, how=lambda settings, split: by_seed[settings["seed"]]
    )
    assert (len(executor.ran), report.searched[0].val) == (8, pytest.approx(0.4))


def test_a_cell_that_another_process_searches_is_its_own(searched, monkeypatch):
    asked = recipe(variants=["baseline", "mlp"])
    others = []

    def meanwhile(line):
        if others or not line.startswith("[1/2]"):
            return
        with monkeypatch.context() as other:
            elsewhere = reader.owner_of(os.getppid())
            other.setattr(writer, "owner_of", lambda pid: elsewhere)
            others.append(searched(trials=2, asked=asked))

    report, executor = searched(trials=2, asked=asked, say=meanwhile)
    (other, its_executor), ran = others[0], len(executor.ran)
    assert (other.counts.running, other.counts.done) == (1, 5)
    assert {settings["embed.names"] for settings, _ in its_executor.ran} == {("mlp",)}
    assert ran + len(its_executor.ran) == report.counts.total == report.counts.done == 8


# --- Pruning --------------------------------------------------------------------------


def test_pruning_saves_work_and_keeps_the_best(searched):
    asked = recipe(splits=list(range(6)))
    _, everything = searched("whole.sqlite", trials=12, asked=asked)
    pruned, less = searched("pruned.sqlite", trials=12, asked=asked, prune=True)
    (cell,) = pruned.searched
    assert cell.pruned > 0
    assert cell.done + cell.pruned == 12
    assert len(less.ran) < len(everything.ran) == 72
    # The best is better on every split, hard ones first: nothing else may win.
    best = max((score(s, 0), s["train.lr"]) for s, split in less.ran if split == 0)
    assert cell.best["train.lr"] == best[1]


def test_what_was_pruned_is_recorded_as_such_and_never_selected(searched):
    """Also where all rivals of a pruned trial are in a cell of their own."""

    def gates_are_bad(settings, split):
        return 0.5 - 0.1 * (settings["model.gate"] == "node") + 0.01 * split

    grid = {"model.gate": ["none"], "model.dropout": [0.1, 0.2]}
    asked = recipe(splits=list(range(6)), grid=grid)
    searched(trials=4, asked=asked, prune=True, how=gates_are_bad)
    asked = recipe(splits=list(range(6)), grid=grid | {"model.gate": ["none", "node"]})
    searched(trials=4, asked=asked, prune=True, how=gates_are_bad)
    with Store.open(searched.path / "s.sqlite") as store:
        given_up = [
            (record.configuration.config["model"]["gate"], record.split, mark["pruned"])
            for record in store.records()
            if "pruned" in (mark := record.result.provenance["search"])
        ]
        (cell,) = Selection.of(store).cells
        assert {row.missing + row.failed for row in store.progress()} == {0}
    assert given_up == [("node", 3, {"after": 4, "of": 6})] * 2
    assert len(cell.candidates) == 2
    assert cell.key.tags == ()
    # Finished after all, it is a candidate like any.
    run_study(asked, searched.path / "s.sqlite", executor=InventedScores(gates_are_bad))
    with Store.open(searched.path / "s.sqlite") as store:
        cells = Selection.of(store).cells
    assert [len(cell.candidates) for cell in cells] == [2, 2]


def test_failures_count_as_worse_than_everything(searched):
    def diverges(settings, split):
        too_high = settings["train.lr"] > 3e-4
        return ZeroDivisionError("diverged") if too_high else score(settings, split)

    report, executor = searched(trials=24, how=diverges, asked=recipe(splits=[0]))
    failed = [settings["train.lr"] > 3e-4 for settings, _ in executor.ran]
    assert report.searched[0].failed == report.counts.failed == sum(failed)
    assert sum(failed[12:]) < sum(failed[:12]) - 2
    assert report.searched[0].best["train.lr"] < 3e-4


def test_a_trial_that_failed_is_left_alone_until_it_is_retried(searched):
    def second_split_fails(settings, split):
        return ZeroDivisionError("once") if split == 1 else score(settings, split)

    options = {"trials": 2, "prune": True, "asked": recipe(splits=[0, 1, 2])}
    report, executor = searched(how=second_split_fails, **options)
    assert [split for _, split in executor.ran] == [0, 1, 0, 1]
    assert report.counts.failed == report.searched[0].failed == 2
    assert searched(**options)[0].ran == 0
    again, executor = searched(retry_failed=True, **options)
    assert [split for _, split in executor.ran] == [1, 2, 1, 2]
    assert (again.searched[0].done, again.counts.failed) == (2, 0)


# --- Mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "'trials' must be given"),
        ({"seed": -1}, "'search_seed' must be in"),
        ({"sampler": "grid"}, "'search' must be one of"),
        ({"asked": recipe(task="statistics")}, "'search' must be of a recipe with"),
        ({"asked": recipe(grid={"model.dropout": [0, 2]})}, "'dropout' must be in"),
        (
            {"asked": recipe(grid={"evolve.k": {"low": 2, "high": 99}})},
            "'k' must be in",
        ),
    ],
)
def test_mistakes_leave_no_store(searched, options, message):
    with pytest.raises(InputError, match=message):
        searched(**options)
    assert not list(searched.path.iterdir())
