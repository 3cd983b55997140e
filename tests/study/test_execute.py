"""Studies: everything is done once, and what fails stops nothing else."""

import pytest
import torch

from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.pipeline import method
from ecg_gnn.study import Only, Selection, Store, run, run_study, units
from ecg_gnn.system.checks import InputError
from small_runs import BOARD, small_config, threads
from small_studies import small_recipe


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


def counts(report):
    return report.counts.total, report.counts.done, report.counts.failed


def test_everything_is_run_once(path):
    said = []
    first = run_study(small_recipe(), path, say=said.append)
    assert counts(first) == (20, 20, 0)
    assert first.ran == 20
    assert said[0] == "20 units: 0 done"
    counted = [line.partition(" ")[0] for line in said[1:]]
    assert counted == [f"[{done}/20]" for done in range(1, 21)]
    again = run_study(small_recipe(), path, say=said.append)
    assert (again.ran, said[21:]) == (0, ["20 units: 20 done"])
    more = run_study(small_recipe(splits=[0, 1, 2]), path)
    assert (more.ran, more.counts.done) == (10, 30)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_records_hold_everything(path):
    recipe = small_recipe(models=["gcn"], variants=["mlp"], seeds=[0, 3])
    run_study(recipe, path, command="ecg-gnn study run small")
    with Store.open(path) as store:
        records = store.records()
        assert sorted(record.pair for record in records) == [
            (0, 0),
            (0, 3),
            (1, 0),
            (1, 3),
        ]
        for record in records:
            made = record.result.provenance
            assert made["command"] == "ecg-gnn study run small"
            assert made["precision"] == "fp32"
            assert {"device", "torch", "commit", "threads"} <= set(made)
            curves = store.curves(record.id)
            assert len(curves.losses) == 4
            best = record.result.best_step - 1
            assert curves.val_scores[best] == pytest.approx(record.result.val)
            assert record.result.evolved_statistics[0]["num_edges"] == 3 * 64


def test_a_study_is_many_runs(path):
    """The numbers of ``study run`` are those of ``run``."""
    with threads(1):
        settings = {"train.lr": 1e-2, "model.drop_edge": 0.5}
        recipe = small_recipe(models=["gcn"], settings=settings)
        run_study(recipe, path)
        report = run(small_config("mlp", "bgrl", "random"))
    with Store.open(path) as store:
        found = {
            (r.configuration.variant, r.configuration.embedding, r.split): r.result.test
            for r in store.records()
        }
        selection = Selection.of(store)
    expected = {(r.variant, r.embedding, r.split): r.test for r in report.records}
    assert found.items() <= expected.items()
    assert {name for name, _, _ in expected} - {name for name, _, _ in found} == {
        "embedding"  # which this recipe does not ask for
    }
    ours = selection.against(selection.cells[1], "identity")
    (theirs,) = [
        c
        for c in report.comparisons
        if (c.embedding, c.against) == (selection.cells[1].key.embedding, "identity")
    ]
    assert ours.mean == pytest.approx(theirs.mean_difference)
    assert ours.ci_low == pytest.approx(theirs.ci_low)


def test_graphs_are_evolved_once(path, tmp_path, monkeypatch):
    evolved = []
    evolve = method.evolve_embedding

    def counted(z, name, dataset, split, *rest):
        evolved.append((name, split.index))
        return evolve(z, name, dataset, split, *rest)

    monkeypatch.setattr(method, "evolve_embedding", counted)
    cache = EmbeddingCache(tmp_path / "cache")
    recipe = small_recipe(settings={"evolve.k": 3}, grid={"model.dropout": [0, 0.5]})
    # The network's dropout is not the weak classifier's: both trainings share a graph.
    run_study(recipe, path, cache=cache, only=Only(variants=["bgrl", "mlp"]))
    assert sorted(evolved) == [("bgrl", 0), ("mlp", 0), ("mlp", 1)]


def test_statistics_train_nothing(path, monkeypatch):
    monkeypatch.setattr(units, "classify", None)
    recipe = small_recipe(task="statistics", variants=["mlp", "bgrl"], models=["gcn"])
    report = run_study(recipe, path)
    assert counts(report) == (3, 3, 0)  # the graph without labels once
    with Store.open(path) as store:
        assert all(record.result.test is None for record in store.records())
        assert store.records(task="train") == []


def test_absent_datasets_are_skipped_unless_asked_for(path, tmp_path):
    recipe = small_recipe(datasets=["tolokers", BOARD], variants=["baseline"])
    skipped = []
    report = run_study(
        recipe,
        path,
        data_root=tmp_path,
        say=skipped.append,
    )
    assert counts(report) == (4, 4, 0)
    assert f"skipping tolokers: tolokers.npz is not in {tmp_path}" in skipped[0]
    with pytest.raises(InputError, match="none of the recipe's datasets is here"):
        run_study(small_recipe(datasets=["tolokers"]), path, data_root=tmp_path)
    (tmp_path / "tolokers.npz").write_text("something else")
    with pytest.raises(InputError, match="tolokers"):
        run_study(recipe, path, data_root=tmp_path, only=Only(datasets=["tolokers"]))


# --- Failures -------------------------------------------------------------------------


def failing(error, split):
    """Classification that fails on one split."""
    classify = units.classify

    def classify_or_fail(dataset, jobs, *rest):
        if any(job.split.index == split for job in jobs):
            raise error
        return classify(dataset, jobs, *rest)

    return classify_or_fail


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory", "CUDA out of"),
        (RuntimeError("can't allocate memory"), "out_of_memory", "can't allocate"),
        (ZeroDivisionError("by zero"), "error", "classify_or_fail"),
        (InputError("'lr' must be small"), "error", "'lr' must be small"),
    ],
)
def test_failures_do_not_stop_a_study(path, monkeypatch, error, kind, text):
    recipe = small_recipe(models=["gcn"], variants=["baseline", "identity"])
    with monkeypatch.context() as patched:
        patched.setattr(units, "classify", failing(error, 0))
        assert counts(run_study(recipe, path)) == (4, 2, 2)
        assert run_study(recipe, path).ran == 0
    with Store.open(path) as store:
        assert {(f.split, f.kind) for f in store.failures()} == {(0, kind)}
        assert all(text in failure.error for failure in store.failures())
    again = run_study(recipe, path, retry_failed=True)
    assert (again.ran, counts(again)) == (2, (4, 4, 0))


def test_splits_that_fail_together_are_tried_alone(path, monkeypatch):
    """A GPU may have room for every split but not for all at once."""
    classify = units.classify

    def only_alone(dataset, jobs, *rest):
        if len(jobs) > 1:
            raise RuntimeError("not together")
        return classify(dataset, jobs, *rest)

    monkeypatch.setattr(units, "classify", only_alone)
    monkeypatch.setattr(units, "most_together", lambda device: 10)
    recipe = small_recipe(models=["gcn"], variants=["baseline"])
    assert counts(run_study(recipe, path)) == (2, 2, 0)


def test_an_interrupted_study_gives_its_units_back(path):
    def stop(line):
        if line.startswith("[1/"):
            raise KeyboardInterrupt

    recipe = small_recipe(models=["gcn"])
    with pytest.raises(KeyboardInterrupt):
        run_study(recipe, path, say=stop)
    with Store.open(path) as store:
        rows = store.progress()
        assert sum(row.done for row in rows) == 1
        assert sum(row.running for row in rows) == 0


def test_mistakes_leave_no_store(path):
    with pytest.raises(InputError, match="'k' must be in"):
        run_study(small_recipe(settings={"evolve.k": 1000}), path)
    with pytest.raises(InputError, match="'jobs' must be in"):
        run_study(small_recipe(), path, jobs=0)
    assert not path.exists()
