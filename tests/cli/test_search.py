"""``fit`` searches unless told what to fit; what it leaves is predicted and scored."""

import csv
import json

import pytest

from csv_graphs import write_stranger

IMPORT = ["data", "import", "--nodes", "nodes.csv", "--edges", "edges.csv"]
FIT = ["fit", "--dataset", "graph", "--out", "model"]
KEYS = {"out", "metric", "validation", "test", "seconds", "leaderboard", "verdict"}


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def truth(ecg_gnn, tmp_path):
    """The true classes of a graph that is imported into the folder graph."""
    found = write_stranger(tmp_path, num_nodes=200, unlabelled=30)
    with (tmp_path / "truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "kind"], *found.items()])
    assert ecg_gnn(*IMPORT, "--label", "kind", "--out", "graph")[0] == 0
    return found


def test_from_a_search_to_scores(ecg_gnn, truth, tmp_path):
    status, out, err = ecg_gnn(*FIT, "--budget", "6s", "--json")
    assert status == 0, err
    said = json.loads(out)
    assert set(said) >= KEYS
    assert said["metric"] == "accuracy"
    assert said["seconds"] < 6.6
    assert sum(row["weight"] for row in said["leaderboard"]) == pytest.approx(
        1, abs=1e-2
    )
    assert ecg_gnn("predict", "model", "--coverage", "0.9", "--out", "p.csv")[0] == 0
    rows = read_rows(tmp_path / "p.csv")
    assert len(rows) == 30
    assert {"set", "p_kind-a"} < set(rows[0])
    status, out, _ = ecg_gnn("score", "p.csv", "truth.csv", "--label", "kind", "--json")
    scores = json.loads(out)
    assert (status, scores["nodes"]) == (0, 30)
    assert scores["accuracy"] > 0.5
    right = [truth[row["id"]] == row["predicted"] for row in rows]
    assert scores["accuracy"] == pytest.approx(sum(right) / len(right))
    status, out, _ = ecg_gnn("explain", "model", "--node", "n030", "--most", "2")
    assert status == 0
    assert "own column" in out


def test_a_single_model_and_a_metric(ecg_gnn, truth):
    options = ["--budget", "3s", "--single", "--metric", "log-loss", "--seed", "1"]
    status, out, err = ecg_gnn(*FIT, *options)
    assert status == 0, err
    assert "log loss" in out
    assert "MODEL_CARD.md" in out


def test_numbers_are_predicted_with_intervals(ecg_gnn, truth, tmp_path):
    assert ecg_gnn(*IMPORT, "--label", "f1", "--out", "numbers")[0] == 0
    fit = ["fit", "--dataset", "numbers", "--out", "n", "--budget", "3s", "--json"]
    status, out, err = ecg_gnn(*fit)
    assert status == 0, err
    assert json.loads(out)["metric"] == "r2"
    predict = ["predict", "n", "--all", "--coverage", "0.8", "--out", "n.csv"]
    assert ecg_gnn(*predict)[0] == 0
    row = read_rows(tmp_path / "n.csv")[0]
    assert float(row["low"]) < float(row["predicted"]) < float(row["high"])
    status, _, err = ecg_gnn("fit", "--dataset", "numbers", "--out", "m", "--k", "3")
    assert status == 2
    assert "number" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "soon"], "budget"),
        (["--budget", "5s", "--k", "3"], "'budget' cannot be combined with other"),
        (["--metric", "r2"], "'metric' must be one of"),
        (["--engine", "spark"], "'engine' must be one of"),
        (["--address", "here:1"], "'address' must be given with --engine ray"),
        (["--jobs", "0"], "'jobs' must be"),
        (["--device", "gpu"], "'device' must be one of ['auto', 'cpu', 'cuda'"),
        (["--device", "cuda", "--engine", "ray"], "must be one of ['auto', 'cpu']"),
    ],
)
def test_what_does_not_fit_is_one_line(ecg_gnn, truth, tmp_path, options, words):
    status, _, err = ecg_gnn(*FIT, *options)
    assert status == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("id,predicted,p_a,p_b", "n1,a,0.2,", "'p_b' must be numbers (got none in"),
        ("id,predicted,p_a,p_b", "n1,a,nan,1", "'p_a' must be numbers (got none in"),
        ("id,predicted,low,high", "n1,1,0,", "'high' must be numbers (got none in"),
        ("id,predicted,low", "n1,1,0", "must have the column 'high'"),
        ("id,predicted", "n1,", "'predicted' must be numbers (got none in row 1)"),
    ],
)
def test_predictions_with_gaps_are_told(refused, tmp_path, header, row, message):
    label = "a" if "p_a" in header else "1"
    (tmp_path / "said.csv").write_text(f"{header}\n{row}\n")
    (tmp_path / "truth.csv").write_text(f"id,label\nn1,{label}\n")
    assert message in refused("score", "said.csv", "truth.csv")
