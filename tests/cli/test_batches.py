"""Training by batches from the command line."""

import json

import pytest
import torch

from ecg_gnn.pipeline import classification
from ecg_gnn.scale import BatchTraining
from small_runs import BOARD, RUN

FIT = ["fit", "--dataset", BOARD, "--model", "sage", "--steps", "2", "--json"]
BATCHES = [*RUN, "--batch-size", "12", "--fanout", "3,2", "--out", "run"]


def read(path):
    return json.loads(path.read_text())


def test_a_run_by_batches(ecg_gnn, tmp_path):
    status, out, err = ecg_gnn(*BATCHES, "--eval-every", "2")
    assert status == 0, err
    assert "ECG (mlp)" in out
    train = read(tmp_path / "run/config.json")["train"]
    assert (train["batch_size"], train["fanout"], train["eval_every"]) == (
        12,
        [3, 2],
        2,
    )
    record = read(tmp_path / "run/records/ecg-mlp-split0.json")
    assert len(record["losses"]) == 3
    assert [score is None for score in record["val_scores"]] == [True, False, False]
    assert record["provenance"]["sampler"] in ("own", "pyg-lib")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_workers_are_no_part_of_a_run(ecg_gnn, tmp_path):
    status, _, err = ecg_gnn(*BATCHES, "--workers", "1", "--embedding", "none")
    assert status == 0, err
    status, _, err = ecg_gnn(*BATCHES, "--embedding", "none")
    assert status == 0, err
    assert "2 of 2 trainings are in the output folder already" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "8", "--fanout", "x"], "'fanout' must be like 10 or 15,5"),
        (
            ["--batch-size", "8", "--fanout", "0"],
            "'fanout' must be -1 (all neighbours)",
        ),
        (["--fanout", "5"], "'batch_size' must be at least 1 with 'fanout'"),
        (["--batch-size", "-2"], "'batch_size' must be in [0, inf)"),
        (["--batch-size", "8", "--model", "h2gcn"], "'batch_size' must be 0 for the"),
        (["--batch-size", "8", "--model", "tag"], "no network of layers of one hop"),
        (["--batch-size", "8", "--workers", "-1"], "'workers' must be in [0, inf)"),
    ],
)
def test_refuses(refused, options, message):
    assert message in refused(*RUN, *options)


def test_out_of_memory_says_what_to_lower(ecg_gnn, monkeypatch):
    def run_out(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(BatchTraining, "learn", run_out)
    status, out, err = ecg_gnn(*BATCHES)
    assert (status, out) == (1, "")
    (line,) = [line for line in err.splitlines() if line.startswith("error")]
    assert "are left on cpu: lower --batch-size (now 12), --fanout or --hidden" in line


@pytest.mark.filterwarnings("default:full batches")
def test_a_fit_too_large_for_full_batches_goes_by_mini_batches(ecg_gnn, monkeypatch):
    monkeypatch.setattr(classification, "available_bytes", lambda _: 2**10)
    status, out, err = ecg_gnn(*FIT, "--out", "large")
    assert status == 0, err
    assert json.loads(out)["config"]["train"]["batch_size"] == 1024
    (line,) = [each for each in err.splitlines() if "mini-batches" in each]
    assert line.startswith("warning: full batches of 64 nodes are unlikely to fit")
    # A layer that reads further than direct neighbours has no mini-batches.
    far = [word.replace("sage", "tag") for word in FIT]
    status, out, err = ecg_gnn(*far, "--out", "far")
    assert status == 0, err
    assert "batch_size" not in json.loads(out)["config"]["train"]
    monkeypatch.setattr(classification, "available_bytes", lambda _: 2**30)
    status, out, err = ecg_gnn(*FIT, "--out", "small")
    assert "batch_size" not in json.loads(out)["config"]["train"]
    assert "mini-batches" not in err
