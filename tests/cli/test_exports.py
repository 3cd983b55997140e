"""Names that a spreadsheet or a browser would run, in what we write."""

import csv
import json
from itertools import pairwise

import pytest

from csv_graphs import write_csv

IDS = ["=1+1", "@x", "-2+3", "-7", "plain", "+a"]
CLASSES = ["=cmd()", "<script>alert(1)</script>"]
FIT = ["fit", "--dataset", "g", "--out", "m", "--device", "cpu", "--embedding", "none"]
FIT += ["--steps", "2", "--hidden", "4", "--layers", "1"]


@pytest.fixture
def model(ecg_gnn, tmp_path):
    names = [f"{name}{'' if turn == 0 else turn}" for turn in range(8) for name in IDS]
    rows = [[name, place % 5, CLASSES[place % 2]] for place, name in enumerate(names)]
    write_csv(tmp_path / "nodes.csv", ["id", "size", "label"], rows)
    write_csv(tmp_path / "truth.csv", ["id", "label"], [[r[0], r[2]] for r in rows])
    edges = list(pairwise(names))
    write_csv(tmp_path / "edges.csv", ["source", "target"], edges)
    graph = ["data", "import", "--nodes", "nodes.csv", "--edges", "edges.csv"]
    for command in ([*graph, "--label", "label", "--out", "g"], FIT):
        status, _, err = ecg_gnn(*command)
        assert status == 0, err
    return names


def test_predictions_compute_nothing_in_a_spreadsheet(ecg_gnn, model, tmp_path):
    scores = {}
    for out in ("safe.csv", "safe.tsv", "raw.csv", "p.parquet"):
        options = ["--no-safe-csv"] if out == "raw.csv" else []
        command = ["predict", "m", "--all", "--coverage", 0.9, "--out", out, *options]
        status, _, err = ecg_gnn(*command)
        assert status == 0, err
        status, found, err = ecg_gnn("score", out, "truth.csv", "--json")
        assert status == 0, err
        scores[out] = json.loads(found)
        assert scores[out].keys() >= {"accuracy", "coverage"}
        assert scores[out] == pytest.approx(scores["safe.csv"], rel=1e-5)
        assert scores[out]["nodes"] == len(model)
    with (tmp_path / "safe.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    cells = [header, *rows]
    numbers = [cell for row in cells for cell in row if cell.startswith("-")]
    assert all(number.removeprefix("-").isdigit() for number in numbers)
    assert not [cell for row in cells for cell in row if cell[:1] in "=+@\t\r" and cell]
    shares = [cell for row in rows for cell in row[-2:]]
    assert max(len(share.lstrip("0.").replace(".", "")) for share in shares) <= 6
    with (tmp_path / "raw.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)][1:] == model


def test_the_card_has_no_html(model, tmp_path):
    card = (tmp_path / "m" / "MODEL_CARD.md").read_text()
    assert "&lt;script>" in card
    assert "<" not in card
