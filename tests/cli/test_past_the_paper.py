"""``ecg-gnn run`` and ``fit`` with cross-fitting, weights, gate and label input."""

import json
from pathlib import Path

import pytest

from small_runs import BOARD, RUN

OPTIONS = ["--cross-fit", 2, "--cross-fit-models", "all"]
OPTIONS += ["--edge-weights", "similarity"]
OPTIONS += ["--gate", "node", "--evolved-layers", "last", "--label-input", 0.5]
ONE = ["--splits", "0", "--embed-steps", 2]


def test_everything_at_once_on_three_graphs(ecg_gnn):
    more = [*ONE, *OPTIONS, "--embedding", "mlp,bgrl", "--out", "out"]
    status, out, err = ecg_gnn(*RUN, *more)
    assert status == 0, err
    assert (
        "ECG (mlp,bgrl), cross-fitted, by all models, weighted, in the last layer, "
        "gated + labels" in out
    )
    assert "identity ×2, in the last layer, gated + labels" in out
    assert "transductive" in out
    again = json.loads(
        ecg_gnn("run", "--config", "out/config.json", "--out", "out", "--json")[1]
    )
    used = again["config"]
    assert used["embed"]["cross_fit"] == 2
    assert used["embed"]["cross_fit_models"] == "all"
    assert used["evolve"]["weights"] == "similarity"
    assert used["model"]["gate"] == "node"
    assert used["model"]["evolved_layers"] == "last"
    assert used["train"]["label_input"] == 0.5


@pytest.mark.parametrize(
    ("embedding", "without"), [("bgrl", True), ("features", True), ("mlp+bgrl", False)]
)
def test_cross_fitting_what_reads_no_labels_is_said(ecg_gnn, embedding, without):
    said = f"warning: --cross-fit changes nothing: no labels are read by {embedding}"
    asked = ["--embedding", embedding, "--cross-fit", 2]
    quick = ["--embed-steps", 2]
    for command in (
        [*RUN, *ONE, *asked, "--json"],
        ["homophily", "--dataset", BOARD, *asked, *quick],
        ["fit", "--dataset", BOARD, *asked, "--steps", 2, "--out", "model"],
    ):
        status, _, err = ecg_gnn(*command)
        assert (status, said in err) == (0, without), err


@pytest.mark.parametrize("model", ["gcn", "sage", "gat"])
def test_on_the_tuned_backbone(ecg_gnn, model):
    more = ["--backbone", "tuned", "--model", model, *ONE, *OPTIONS, "--json"]
    status, out, err = ecg_gnn(*RUN, *more)
    assert status == 0, err
    rows = [row["variant"] for row in json.loads(out)["results"]]
    assert rows == ["baseline", "ecg", "identity", "embedding"]


def test_a_fit_takes_those_that_new_nodes_can_have(ecg_gnn):
    fit = ["fit", "--dataset", BOARD, "--steps", 2, "--hidden", 8, "--json"]
    more = ["--cross-fit", 2, "--cross-fit-models", "all"]
    more += ["--gate", "node", "--evolved-layers", "last"]
    more += ["--label-input", 0.5, "--knn", "exact"]
    status, out, err = ecg_gnn(*fit, *more, "--out", "model")
    assert status == 0, err
    used = json.loads(out)["config"]
    assert (used["embed"]["cross_fit"], used["evolve"]["knn"]) == (2, "exact")
    assert used["embed"]["cross_fit_models"] == "all"
    card = Path("model", "MODEL_CARD.md").read_text(encoding="utf-8")
    assert (
        "| ECG (mlp), cross-fitted, by all models, in the last layer, gated + labels |"
        in card
    )
    assert "| plain GNN (baseline) + labels |" in card
    assert (
        "| identity control (self-loops), in the last layer, gated + labels |" in card
    )
    assert (used["model"]["gate"], used["train"]["label_input"]) == ("node", 0.5)
    status, out, err = ecg_gnn("predict", "model", "--all", "--out", "all.csv")
    assert status == 0, err
    status, _, err = ecg_gnn(*fit, "--gate", "edge", "--out", "other")
    assert status == 2
    assert "error: 'gate' must be one of" in err


REFUSED = {
    "--embed-hidden 1 --hidden 64": "'embed_hidden' must be in [2, 1048576] (got 1)",
    "--cross-fit 1": r"'cross_fit' must be in [2, 100] (got 1)",
    "--cross-fit 2 --symmetric": "'symmetric' must be off with 'cross_fit'",
    "--cross-fit 90": "'cross_fit' must be in [2, 32], the number of training nodes",
    "--cross-fit 2 --cross-fit-models one": "'cross_fit_models' must be one of ['own'",
    "--cross-fit-models all": "'cross_fit_models' must be 'own' without 'cross_fit'",
    "--edge-weights cosine": "'edge_weights' must be one of ['uniform', 'similarity']",
    "--gate edge": "'gate' must be one of ['none', 'node'] (got 'edge')",
    "--label-input 1": "'label_input' must be in [0, 0.99] (got 1.0)",
    "--evolved-layers first": "'evolved_layers' must be one of ['all', 'last'] (got",
    "--evolved-layers last --model h2gcn": "'evolved_layers' must be one of ['all'] f",
    "--gate node --model h2gcn": "'gate' must be one of ['none'] for the model 'h2gcn'",
    "--gate node --model resnet": "'gate' must be one of ['none'] for the model",
    "--edge-weights similarity --model h2gcn": "'edge_weights' must be one of ['unif",
    "--label-input 0.5 --model cpgnn": "'label_input' must be 0 for the model 'cpgnn'",
    "--label-input 0.5 --model fsgnn": "'label_input' must be 0 for the model 'fsgnn'",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_makes_no_sense_is_refused(refused, words):
    assert REFUSED[words] in refused(*RUN, *ONE, *words.split())


def test_help_teaches(ecg_gnn):
    text = " ".join(ecg_gnn("run", "--help")[1].replace("│", " ").split())
    for option in (
        "--cross-fit",
        "--cross-fit-models",
        "--edge-weights",
        "--gate",
        "--evolved-layers",
        "--label-input",
    ):
        assert option in text
    assert "never saw its label" in text
    assert "Transductive" in text


def test_homophily_of_a_cross_fitted_graph(ecg_gnn):
    more = ["--embedding", "mlp", "--cross-fit", 2, "--cross-fit-models", "all"]
    more += ["--k", 3, "--embed-steps", 2]
    status, out, err = ecg_gnn("homophily", "--dataset", BOARD, *more)
    assert status == 0, err
    assert "G_ECG (mlp, cross-fitted, by all models)" in out
