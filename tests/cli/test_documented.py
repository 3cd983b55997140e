"""Commands that the guide and the README show, taken from the pages and run."""

import csv
import importlib.util
import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from csv_graphs import write_stranger
from documented import GUIDE, ROOT, code_blocks, commands, section
from ecg_gnn.data import csbm, load_dataset
from small_runs import ring_arrays

SETUP = [["make", "setup"], ["source", ".venv/bin/activate"]]
# The last of an option counts; a page shows what a person would give it.
SHORTER = {
    "advise": "--budget 2s",
    "fit": "--budget 4s",
    "run": "--steps 2 --splits 0",
    "study run": "--set train.steps=2 --splits 0 --models gcn",
}


@pytest.fixture
def typed(ecg_gnn):
    """Run documented commands one after the other; all must succeed."""

    def call(lines):
        for name, *words in lines:
            assert name == "ecg-gnn", f"not a command of this package: {name}"
            line = " ".join(words)
            for verb, options in SHORTER.items():
                words += options.split() if line.startswith(f"{verb} ") else []
            status, _, err = ecg_gnn(*words)
            assert status == 0, f"{line}\n{err}"

    return call


def tolokers_tables():
    path = GUIDE / "tolokers_csv.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_tables


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_page(typed, folder):
    """The own-data page from top to bottom, and what it leaves."""
    lines = commands((GUIDE / "own-data.md").read_text())
    assert lines[:2] == SETUP  # what made this very installation
    assert len(lines) < 10
    typed(lines[2:])
    truth = {row["id"]: row["banned"] for row in rows_of(folder / "answers.csv")}
    predicted = [rows_of(folder / name) for name in ("held_out.csv", "new.csv")]
    asked = [
        {row["id"] for row in rows_of(folder / "nodes.csv") if not row["banned"]},
        {row["id"] for row in rows_of(folder / "new_nodes.csv")},
    ]
    assert [{row["id"] for row in rows} for rows in predicted] == asked
    for name in ("w27.png", "advice/advice.md", "model/MODEL_CARD.md"):
        assert (folder / name).stat().st_size > 0
    rows = [row for found in predicted for row in found]
    banned = [truth[row["id"]] == "yes" for row in rows]
    return roc_auc_score(banned, [float(row["p_yes"]) for row in rows])


@pytest.mark.slow
def test_own_data_page_on_a_generated_graph(typed, tmp_path):
    graph = csbm(nodes=300, classes=2, degree=6, homophily=0.2, signal=2.0, features=6)
    tolokers_tables()(graph, tmp_path)
    assert check_page(typed, tmp_path) > 0.8
    typed(commands((GUIDE / "options.md").read_text()))  # on the graph imported above
    assert (tmp_path / "runs" / "first" / "figure.png").exists()
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.dataset
def test_own_data_page_on_tolokers(typed, data_root, tmp_path):
    graph = load_dataset("tolokers", data_root=data_root, download=False)
    tolokers_tables()(graph, tmp_path, most=800)
    assert check_page(typed, tmp_path) > 0.6


def test_readme_on_your_own_graph(typed, tmp_path):
    write_stranger(tmp_path)
    for path in tmp_path.glob("*.csv"):  # the README calls n017 n17, as people do
        path.write_text(re.sub(r"\bn0*(\d+)\b", r"n\1", path.read_text()))
    text = section((ROOT / "README.md").read_text(), "## On your own graph")
    arrays = ring_arrays()
    names = {"x": "node_features", "y": "node_labels", "edges": "edges"}
    (code,) = code_blocks(text, "python")
    exec(code, {"np": np, **{name: arrays[key] for name, key in names.items()}})
    typed(commands(text))
    assert len(rows_of(tmp_path / "unlabelled.csv")) == 20
