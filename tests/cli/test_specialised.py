"""``ecg-gnn run --model h2gcn`` and the like, and options that only one model has."""

import json

import pytest

from ecg_gnn.nn import SPECIALISED
from small_runs import BOARD, RUN

SHORT = {"cpgnn": ["--set", "pretrain_steps=2"], "polynormer": ["--set", "heads=2"]}


@pytest.mark.parametrize("model", SPECIALISED)
def test_every_model_runs(ecg_gnn, model):
    more = [*SHORT.get(model, []), "--splits", "0", "--embed-steps", 2]
    status, out, err = ecg_gnn(*RUN, "--model", model, *more, "--out", "out", "--json")
    assert status == 0, err
    report = json.loads(out)
    rows = [row["variant"] for row in report["results"]]
    several = SPECIALISED[model].several_graphs
    compared = ["baseline", "ecg", "identity", "embedding"]
    assert rows == (compared if several else ["baseline"])
    used = report["config"]["model"]
    assert used["name"] == model
    assert set(used.get("options", {})) == set(SPECIALISED[model].options)
    again = ecg_gnn("run", "--config", "out/config.json", "--out", "out", "--json")
    assert json.loads(again[1]) == report


def test_a_trained_model_embeds_with_its_options(ecg_gnn):
    more = ["--model", "gpr-gnn", "--embedding", "mlp-gnn", "--set", "alpha=0.9"]
    status, out, err = ecg_gnn(*RUN, *more, "--splits", "0", "--json")
    assert status == 0, err
    assert json.loads(out)["config"]["model"]["options"]["alpha"] == 0.9


def test_options_given_win_over_those_of_a_file_one_by_one(ecg_gnn, tmp_path):
    (tmp_path / "run.yaml").write_text(
        f"dataset: '{BOARD}'\nsplits: [0]\nembed: {{names: [none]}}\n"
        "model: {name: jacobiconv, layers: 1, options: {a: 1, b: 2}}\n"
        "train: {steps: 2}\nevolve: {k: 3}\n"
    )
    more = ["--set", "b=3", "--set", "scale=1.5"]
    status, out, err = ecg_gnn("run", "--config", "run.yaml", *more, "--json")
    assert status == 0, err
    found = json.loads(out)["config"]["model"]["options"]
    assert found == {"a": 1.0, "b": 3.0, "late_dropout": 0.1, "scale": 1.5}


def test_help_names_them_all(ecg_gnn):
    help_text = " ".join(ecg_gnn("run", "--help")[1].replace("│", " ").split())
    for model in SPECIALISED:
        assert model in help_text
    assert "--set" in help_text
