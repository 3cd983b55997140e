"""A whole run: what it compares, what it leaves behind, and how it goes on."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ecg_gnn.config import EmbedConfig, ModelConfig, RunConfig, TrainConfig
from ecg_gnn.data import make_dataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.pipeline import classify
from ecg_gnn.study import run, units
from ecg_gnn.study.records import provenance
from ecg_gnn.system.checks import InputError
from small_runs import BOARD, STATISTICS, small_board, small_config, threads


def numbers(report):
    """Everything that must come out again, sorted; times and machines left out."""
    found = [
        (r.variant, str(r.embedding), r.split, r.val, r.test, r.best_step, *r.losses)
        for r in report.records
    ]
    return sorted(found)


def names_in(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


def no_training(*args, **kwargs):
    raise AssertionError("nothing should be trained here")


# --- The report -----------------------------------------------------------------------


def test_report_is_what_is_promised(tmp_path):
    report = run(small_config("mlp", "bgrl"), out=tmp_path / "run").to_dict()
    assert {"dataset", "metric", "results", "comparisons"} <= set(report)
    assert report["dataset"] == BOARD
    assert report["metric"] == "roc_auc"
    wanted = {"variant", "model", "embedding", "test_mean", "test_std", "val_mean"}
    for row in report["results"]:
        assert wanted | {"per_split"} <= set(row)
        assert len(row["per_split"]) == 2
        assert 0 <= row["test_mean"] <= 1
    wanted = {"variant", "against", "mean_difference", "ci_low", "ci_high"}
    for row in report["comparisons"]:
        assert wanted <= set(row)
    rows = [(row["variant"], row["embedding"]) for row in report["results"]]
    assert rows[-2:] == [("embedding", "mlp"), ("embedding", "bgrl")]
    pairs = [(row["embedding"], row["against"]) for row in report["comparisons"]]
    assert pairs == [
        ("mlp", "baseline"),
        ("mlp", "identity"),
        ("mlp", "embedding"),
        ("bgrl", "baseline"),
        ("bgrl", "identity"),
        ("bgrl", "embedding"),
        ("identity", "baseline"),
        ("mlp", "baseline"),
        ("mlp", "identity"),
        ("bgrl", "baseline"),
        ("bgrl", "identity"),
    ]
    assert set(report["homophily"]["graph"]) == STATISTICS
    assert set(report["homophily"]["evolved"]) == {"mlp", "bgrl"}
    assert json.loads(json.dumps(report, allow_nan=False))


def test_graph_without_edges_gives_nulls_not_nan():
    lonely = make_dataset(
        name="lonely",
        x=np.random.default_rng(0).standard_normal((30, 1)),
        y=np.arange(30) % 3,
        edges=np.zeros((0, 2), dtype=int),
    )
    report = run(small_config("mlp", "bgrl"), dataset=lonely).to_dict()
    assert report["metric"] == "accuracy"
    assert report["homophily"]["graph"]["edge_homophily"] is None
    assert json.dumps(report, allow_nan=False)


def diverging(*arguments, **options):
    """A training that lost its way after the best step."""
    [(network, result)] = classify(*arguments, **options)
    lost = [*result.losses[:2], math.inf, math.nan]
    return [(network, replace(result, losses=lost, val_scores=lost, test_scores=lost))]


def test_diverged_steps_are_null(tmp_path, monkeypatch):
    """JSON has no word for what is not a number."""
    monkeypatch.setattr(units, "classify", diverging)
    report = run(small_config("none"), out=tmp_path / "run")
    for record in report.records:
        assert record.losses[2:] == record.test_scores[2:] == [None, None]
    monkeypatch.setattr(units, "classify", no_training)
    assert numbers(run(small_config("none"), out=tmp_path / "run")) == numbers(report)


def test_a_test_score_that_is_not_a_number_is_refused(monkeypatch):
    def lost(*arguments, **options):
        [(network, result)] = classify(*arguments, **options)
        return [(network, replace(result, test=math.nan))]

    monkeypatch.setattr(units, "classify", lost)
    with pytest.raises(InputError, match="'lr' must be small enough"):
        run(small_config("none"))


def test_a_dataset_of_ones_own_is_named_in_the_record(tmp_path):
    board = replace(small_board(), name="mine")
    report = run(small_config("none"), dataset=board, out=tmp_path / "run")
    assert report.config.dataset == report.dataset == "mine"
    assert json.loads((tmp_path / "run/config.json").read_text())["dataset"] == "mine"


def test_fewer_labels():
    few = run(small_config("none", label_rate=0.25))
    assert "25% of the labelled nodes train" in few.note
    assert numbers(few) != numbers(run(small_config("none")))
    with pytest.raises(InputError, match=r"'label_rate' must be at most 0\.5"):
        run(small_config("none", label_rate=0.7))


def test_random_splits():
    drawn = run(small_config("none", random_splits=True))
    assert "10 random splits from seed 0" in drawn.note
    assert numbers(drawn) != numbers(run(small_config("none")))


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(small_config("mlp"))
    assert not any(tmp_path.iterdir())


# --- The folder -----------------------------------------------------------------------


def test_folder_holds_everything(tmp_path):
    report = run(small_config("mlp"), out=tmp_path / "run")
    assert names_in(tmp_path / "run") == [
        "config.json",
        "records/baseline-split0.json",
        "records/baseline-split1.json",
        "records/ecg-mlp-split0.json",
        "records/ecg-mlp-split1.json",
        "records/embedding-input-mlp-identity-split0.json",
        "records/embedding-input-mlp-identity-split1.json",
        "records/identity-identity-split0.json",
        "records/identity-identity-split1.json",
        "results.json",
        "run.json",
    ]
    described = json.loads((tmp_path / "run/run.json").read_text())
    assert described["dataset_sha256"] == small_board().sha256
    assert described["id"] == report.config.run_id(small_board().sha256)
    assert described["config"] == json.loads((tmp_path / "run/config.json").read_text())
    assert described["provenance"]["torch"] == torch.__version__
    assert {"ecg_gnn", "commit", "python", "numpy", "device", "threads"} <= set(
        described["provenance"]
    )
    record = json.loads((tmp_path / "run/records/ecg-mlp-split1.json").read_text())
    assert record["id"] == described["id"]
    together = {"trained_together": 1}
    assert record["provenance"] == {**described["provenance"], **together}
    assert len(record["losses"]) == len(record["test_scores"]) == 4
    plain = json.loads(json.dumps(report.to_dict()))
    written = (tmp_path / "run/results.json").read_text()
    assert json.loads(written) == plain


def test_folder_named_after_the_run(tmp_path):
    report = run(small_config("none"), out_root=tmp_path)
    run_id = report.config.run_id(small_board().sha256)
    assert report.folder == tmp_path / f"minesweeper-gen-gcn-{run_id}"


def test_rerun_reuses_every_record(tmp_path, monkeypatch):
    first = run(small_config("mlp"), out=tmp_path / "run")
    monkeypatch.setattr(units, "classify", no_training)
    monkeypatch.setattr(units, "evolve", no_training)
    told = []
    again = run(
        small_config("mlp"),
        out=tmp_path / "run",
        on_record=no_training,
        on_reused=lambda count, total: told.append((count, total)),
    )
    assert again.to_dict() == first.to_dict()
    assert told == [(8, 8)]


def test_a_lost_record_is_trained_again(tmp_path):
    first = run(small_config("mlp"), out=tmp_path / "run")
    (tmp_path / "run/records/ecg-mlp-split1.json").unlink()
    (tmp_path / "run/config.json").unlink()
    assert numbers(run(small_config("mlp"), out=tmp_path / "run")) == numbers(first)
    assert (tmp_path / "run/config.json").exists()


def test_config_of_a_run_is_the_run(tmp_path):
    first = run(small_config("mlp"), out=tmp_path / "run")
    written = json.loads((tmp_path / "run/config.json").read_text())
    again = run(RunConfig.from_dict(written), out=tmp_path / "run")
    assert again.config == first.config


def test_another_run_is_refused_and_nothing_touched(tmp_path):
    run(small_config("none"), out=tmp_path / "run")
    before = {
        name: (tmp_path / "run" / name).read_bytes()
        for name in names_in(tmp_path / "run")
    }
    with pytest.raises(InputError, match=r"holds another run \(\w{12}, this one is"):
        run(small_config("none", seed=1), out=tmp_path / "run")
    for name, content in before.items():
        assert (tmp_path / "run" / name).read_bytes() == content


def test_foreign_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        run(small_config("none"), out=tmp_path)
    assert names_in(tmp_path) == ["thesis.txt"]


def test_a_first_write_that_was_killed_does_not_block_the_folder(tmp_path):
    (tmp_path / ".run.json.x1y2.json").write_text("{")
    run(small_config("none"), out=tmp_path)
    assert (tmp_path / "results.json").exists()


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere/run"])
def test_places_that_cannot_be_written(tmp_path, place):
    (tmp_path / "file").write_text("x")
    with pytest.raises(
        InputError, match=r"'out' (must be a folder|.*cannot be written)"
    ):
        run(small_config("none"), out=tmp_path / place)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"id": 1}', "null"])
def test_damaged_record_is_named(tmp_path, content):
    run(small_config("none"), out=tmp_path / "run")
    path = tmp_path / "run/records/baseline-split0.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"baseline-split0\.json is damaged .*remove"):
        run(small_config("none"), out=tmp_path / "run")


def test_damaged_description_is_named(tmp_path):
    (tmp_path / "run.json").write_text('["?"]')
    with pytest.raises(InputError, match=r"run\.json is damaged"):
        run(small_config("none"), out=tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": ModelConfig(name="gat-sep", hidden=12)},
        {"train": TrainConfig(precision="tf32"), "device": "cpu"},
        {"embed": EmbedConfig(names=("precomputed:absent.npy",))},
        {"embed": EmbedConfig(names=("own:absent",))},
    ],
)
def test_what_cannot_run_leaves_no_folder(tmp_path, settings):
    with pytest.raises(InputError):
        run(replace(small_config("mlp"), **settings), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- Embeddings from outside ----------------------------------------------------------


def precomputed(path):
    return small_config(f"precomputed:{path}")


def test_another_content_of_a_file_is_another_run(tmp_path):
    path, out = tmp_path / "z.npy", tmp_path / "run"
    np.save(path, np.random.default_rng(0).standard_normal((64, 3)))
    first = run(precomputed(path), out=out)
    assert numbers(run(precomputed(path), out=out)) == numbers(first)
    np.save(path, np.random.default_rng(1).standard_normal((64, 3)))
    with pytest.raises(InputError, match="holds another run"):
        run(precomputed(path), out=out)


@dataclass(frozen=True)
class Scaled:
    """The features, scaled."""

    factor: torch.Tensor
    uses_labels = False
    leaks = False

    def fit(self, data, split, *, seed):
        return self

    def embed(self, data):
        return data.x * self.factor


def test_an_embedder_of_ones_own(tmp_path):
    config, out = small_config("own:scaled"), tmp_path / "run"
    factor = torch.arange(7.0)
    own = {"own:scaled": Scaled(factor)}
    report = run(config, embedders=own, out=out)
    assert report.results[1].embedding == "own:scaled"
    assert numbers(run(config, embedders=own, out=out)) == numbers(report)
    with pytest.raises(InputError, match="holds another run"):
        run(config, embedders={"own:scaled": Scaled(factor + 1)}, out=out)


# --- Killed, resumed, in parallel -----------------------------------------------------


RUN_SLOWLY = """
import sys, time
from small_runs import small_config
from ecg_gnn.study import run
run(small_config("mlp", "bgrl"), out=sys.argv[1],
    on_record=lambda record, done, total: time.sleep(0.5 if done < 3 else 60))
"""


def test_killed_in_the_middle_and_resumed(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_SLOWLY, str(out)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": "tests"},
        cwd=Path(__file__).parents[2],
    )
    try:
        deadline = time.monotonic() + 120
        while len(list(out.glob("records/*.json"))) < 3:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = len(list(out.glob("records/*.json")))
    assert 3 <= done < 8
    with threads(1):
        resumed = run(small_config("mlp", "bgrl"), out=out)
        uninterrupted = run(small_config("mlp", "bgrl"))
    assert numbers(resumed) == numbers(uninterrupted)
    assert resumed.results == uninterrupted.results
    assert resumed.comparisons == uninterrupted.comparisons


@pytest.mark.slow
def test_several_jobs_give_the_same_numbers(tmp_path):
    config = small_config("mlp", "mlp+bgrl")
    with threads(max(1, (os.cpu_count() or 1) // 2)):
        alone = run(config)
        cache = EmbeddingCache(tmp_path / "cache")
        both = run(config, jobs=2, cache=cache, out=tmp_path / "run")
    assert numbers(both) == numbers(alone)
    assert both.results == alone.results


def test_jobs_must_be_positive():
    with pytest.raises(InputError, match=r"'jobs' must be in \[1, inf\) \(got 0\)"):
        run(small_config("none"), jobs=0)


def test_a_copied_tree_is_named_by_the_environment(monkeypatch):
    monkeypatch.setenv("ECG_COMMIT", "0123456789ab")
    assert provenance("cpu")["commit"] == "0123456789ab"
