"""Options past the paper are named wherever a variant is, and never mixed up."""

import json

import pytest

from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import explain, run_tags, tagged, tags_read_by
from ecg_gnn.config.run_config import replaced
from ecg_gnn.study import Selection, best_ecg, run
from ecg_gnn.study.store import Store
from ecg_gnn.study.table import report_markdown, row_name
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import FORMATS
from ecg_gnn_lab.tables.statistics import measured_graphs
from small_runs import small_board, small_config
from small_studies import HandmadeStore, run_command

ALL = {
    "embed.cross_fit": 5,
    "embed.cross_fit_models": "all",
    "evolve.weights": "similarity",
    "model.gate": "node",
    "model.evolved_layers": "last",
    "train.label_input": 0.5,
}
LAST = "in the last layer"
EVERY_TAG = ("cross-fitted", "by all models", "weighted", LAST, "gated", "labels")


@pytest.fixture
def made(tmp_path):
    store = HandmadeStore(tmp_path / "study.sqlite")
    yield store
    store.writer.close()


def select(made):
    with Store.open(made.writer.path) as store:
        return Selection.of(store)


def table(made, name):
    with Store.open(made.writer.path) as store:
        return StudyTables(store)[name]


# --- Names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("embedding", "tags"),
    [
        (None, ("labels",)),
        ("identity", (LAST, "gated", "labels")),
        ("random", (LAST, "gated", "labels")),
        ("bgrl", ("weighted", LAST, "gated", "labels")),
        ("mlp", EVERY_TAG),
        ("mlp,bgrl", EVERY_TAG),
        ("mlp-gnn", EVERY_TAG),
    ],
)
def test_a_variant_has_the_tags_of_what_it_reads(embedding, tags):
    config = replaced(RunConfig(), ALL)
    assert run_tags(config, embedding) == tags
    assert tags_read_by(embedding, EVERY_TAG) == tags
    assert run_tags(RunConfig(), embedding) == ()


def test_graphs_have_the_tags_of_what_made_them():
    config = replaced(RunConfig(), ALL)
    assert run_tags(config, "mlp", "statistics") == EVERY_TAG[:2]
    assert run_tags(config, "bgrl", "statistics") == ()


def test_names_say_it():
    assert row_name("ecg", "mlp") == "ECG (mlp)"
    assert row_name("ecg", "mlp", EVERY_TAG) == (
        "ECG (mlp), cross-fitted, by all models, weighted, in the last layer, gated "
        "+ labels"
    )
    assert row_name("baseline", None, ("labels",)) == "baseline + labels"
    assert row_name("identity", "identity,identity", ("gated",)) == "identity ×2, gated"
    assert tagged("tuned gcn", ()) == "tuned gcn"


def test_every_tag_is_explained():
    notes = explain(EVERY_TAG)
    assert len(notes) == len(EVERY_TAG)
    assert "transductive" in notes[-1]
    assert explain(["gated", "gated"]) == explain(["gated"])


def test_a_run_names_them_everywhere():
    config = replaced(small_config("mlp", splits=(0,)), ALL | {"embed.cross_fit": 2})
    text = report_markdown(run(config, dataset=small_board()))
    for name in (
        "| baseline + labels |",
        "| ECG (mlp), cross-fitted, by all models, weighted, in the last layer, gated "
        "+ labels |",
        "| identity, in the last layer, gated + labels |",
        "| G_ECG (mlp, cross-fitted, by all models) |",
        "transductive",
    ):
        assert name in text


# --- Selection and tables -------------------------------------------------------------


def test_cells_with_options_are_cells_of_their_own(made):
    for settings in ({}, {"train.label_input": 0.5}, {"train.label_input": 0.25}):
        made.add([0.5, 0.6], **settings)
    cells = select(made).cells
    assert [cell.label for cell in cells] == ["baseline", "baseline + labels"]
    assert [len(cell.candidates) for cell in cells] == [1, 2]  # the rate was chosen
    assert [cell.key.model_label for cell in cells] == ["gcn", "gcn + labels"]


def test_rivals_have_the_same_options(made):
    labels = {"train.label_input": 0.5}
    gate = {"model.gate": "node", "model.evolved_layers": "last"}
    scores = iter(range(10, 20))
    for settings in ({}, gate, labels, labels | gate):
        for embedding in (None, "identity", "mlp"):
            if embedding is not None or "model.gate" not in settings:
                test = next(scores) / 100
                made.add([test, test + 0.01], embedding=embedding, **settings)
    selection = select(made)
    assert len(selection.cells) == 10
    assert len(selection.models()) == 2
    crossed = made.add([0.9, 0.8], embedding="mlp", **ALL)
    selection = select(made)
    (cell,) = [c for c in selection.cells if c.chosen.configuration.id == crossed.id]
    by_label = {c.label: c.chosen.tests for c in selection.cells}
    for other, rival in [
        ("baseline", "baseline + labels"),
        ("identity", "identity, in the last layer, gated + labels"),
    ]:
        expected = [0.9 - by_label[rival][0, 0], 0.8 - by_label[rival][1, 0]]
        assert selection.against(cell, other).mean == pytest.approx(sum(expected) / 2)


def test_the_best_of_the_plain_and_the_best_with_labels_stand_apart(made):
    for settings in ({}, {"train.label_input": 0.5}):
        made.add([0.5, 0.6], **settings)
        made.add([0.5, 0.6], embedding="identity", **settings)
        made.add([0.5, 0.7], embedding="identity", **settings, **{"model.gate": "node"})
        made.add([0.6, 0.7], embedding="mlp", **settings)
        made.add([0.7, 0.8], embedding="mlp", **settings, **{"model.gate": "node"})
    groups = select(made).models()
    assert [best_ecg(group).label for group in groups] == [
        "ECG (mlp), gated",
        "ECG (mlp), gated + labels",
    ]
    rows = table(made, "results").rows
    assert [row["label"] for row in rows] == [
        *("baseline", "ECG (mlp), gated", "identity, gated"),
        *("baseline + labels", "ECG (mlp), gated + labels", "identity, gated + labels"),
    ]
    # The paper has no such rows: its numbers stand beside the plain baseline only.
    sources = [row["published_source"] for row in rows]
    assert sources == ["ECG paper"] + 5 * [None]


@pytest.mark.parametrize("name", ["results", "embeddings", "hyperparameters"])
def test_every_table_says_labels_and_transductive(made, name):
    made.add([0.5, 0.6], **{"train.label_input": 0.5})
    made.add([0.5, 0.6], embedding="mlp", **{"train.label_input": 0.5})
    text = FORMATS["md"](table(made, name))
    assert text.count(" + labels") >= 4  # model and variant of both rows
    assert "transductive" in text


def test_cross_fitted_graphs_are_measured_apart(made):
    made.add([0.5], embedding="mlp")
    made.add([0.5], embedding="mlp", **{"evolve.weights": "similarity"})
    made.add([0.5], embedding="mlp", **{"embed.cross_fit": 5})
    with Store.open(made.writer.path) as store:
        labels = [graph.label for graph in measured_graphs(store)]
        progress = [row.tags for row in store.progress()]
    assert len(labels) == 2  # weights change no edge
    assert [label.endswith(", cross-fitted)") for label in labels] == [False, True]
    assert progress == [(), ("weighted",), ("cross-fitted",)]


def test_graphs_of_one_name_are_told_apart(made):
    """By all that they differ in: one setting alone might not be what did it."""
    wide, slow = {"embed.hidden": 64, "embed.lr": 0.25}, {"embed.lr": 0.5}
    for settings in ({}, wide, slow, wide | {"evolve.k": 7}):
        made.add([0.5], embedding="mlp", **settings)
    with Store.open(made.writer.path) as store:
        labels = [graph.label for graph in measured_graphs(store)]
    name = "G_ECG (mlp, k = None, self-loops exclude"
    assert labels == [
        f"{name}, embed.hidden None, embed.lr None)",
        f"{name}, embed.hidden 64, embed.lr 0.25)",
        f"{name}, embed.hidden None, embed.lr 0.5)",
        "G_ECG (mlp, k = 7, self-loops exclude)",
    ]


def test_the_command_computes_the_same_again(made):
    command = run_command(made.add([0.5], embedding="mlp", **ALL), 0)
    for words in (
        "--cross-fit 5",
        "--cross-fit-models all",
        "--evolved-layers last",
        "--edge-weights similarity",
        "--gate node",
        "--label-input 0.5",
    ):
        assert words in command
    assert "#" not in command


def test_stored_settings_are_plain(made):
    config = made.add([0.5], embedding="mlp", **ALL).config
    assert RunConfig.from_dict(json.loads(json.dumps(config))).model.gate == "node"
