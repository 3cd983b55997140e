"""The paper's tables: its numbers beside ours, and only where they belong."""

import csv
import io
import json

import pytest

from ecg_gnn._version import MOVED, NUMERICS
from ecg_gnn.study.store import Store
from ecg_gnn_lab.published import PAPER
from ecg_gnn_lab.tables import FORMATS, TABLES, StudyTables
from small_runs import STATISTICS
from small_studies import HandmadeStore, dataset_info

GLOVE = dataset_info("roman-empire-glove", note="substitute features")


@pytest.fixture
def made(tmp_path):
    store = HandmadeStore(tmp_path / "study.sqlite")
    yield store
    store.writer.close()


@pytest.fixture
def filled(made):
    """Two datasets, two models, everything beside everything."""
    for dataset in (dataset_info(), GLOVE):
        made.add([0.5, 0.6, 0.7], dataset=dataset, model="resnet")
        for model in ("gcn", "sage"):
            cell = {"dataset": dataset, "model": model}
            made.add([0.88, 0.89, 0.93], **cell, **{"model.layers": 4})
            for embedding, gain in {
                "mlp": 0.02,
                "bgrl": 0.01,
                "identity": 0.03,
                "random": -0.01,
            }.items():
                tests = [0.88 + gain, 0.9 + gain, 0.92 + gain]
                settings = {"model.layers": 4, "evolve.k": 3}
                settings["evolve.self_loops"] = "within_k"
                made.add(tests, **cell, embedding=embedding, **settings)
    return made


def table(made, name, recipe=None):
    with Store.open(made.writer.path) as store:
        return StudyTables(store, recipe)[name]


def row_of(document, **wanted):
    (found,) = [row for row in document.rows if wanted.items() <= row.items()]
    return found


def test_results(filled):
    document = table(filled, "results")
    row = row_of(document, dataset="minesweeper", model="gcn", variant="ecg")
    assert row["embedding"] == "mlp"
    assert row["test_mean"] == pytest.approx(92)
    assert (row["published_mean"], row["published_std"]) == (92.63, 0.1)
    assert row["published_difference"] == pytest.approx(92 - 92.63)
    assert row["minus_baseline"] == pytest.approx(2)
    assert row["minus_identity"] == pytest.approx(-1)
    assert 0 < row["minus_baseline_p"] < row["minus_baseline_p_holm"] <= 1
    assert row["minus_baseline_p_wilcoxon"] is not None
    variants = [r["variant"] for r in document.rows if r["model"] == "gcn"]
    assert variants == ["baseline", "ecg", "identity", "random"] * 2
    baseline = row_of(document, dataset="minesweeper", model="gcn", variant="baseline")
    assert baseline["published_mean"] == 89.75
    control = row_of(document, dataset="minesweeper", model="gcn", variant="identity")
    assert control["published_mean"] is control["minus_baseline_p_holm"] is None
    assert control["minus_baseline"] == pytest.approx(3)
    resnet = row_of(document, dataset="minesweeper", model="resnet")
    assert resnet["published_mean"] == 50.89


@pytest.mark.parametrize("name", TABLES)
def test_the_substitute_never_stands_in_the_papers_column(filled, name):
    document = table(filled, name)
    rows = [row for row in document.rows if row["dataset"] == GLOVE.name]
    assert rows
    for row in rows:
        known = [key for key in row if "paper" in key or "published" in key]
        assert all(row[key] is None for key in known)
    assert any("substitute features" in note for note in document.notes)


def test_ones_own_file_never_does_either(made):
    made.add([0.5], dataset=dataset_info("minesweeper", sha256="f" * 64))
    made.add([0.5], random_splits=True)
    for row in table(made, "results").rows:
        assert row["published_mean"] is None


def test_other_backbones_have_no_paper(made):
    made.add([0.5], **{"model.backbone": "tuned"})
    (row,) = table(made, "results").rows
    assert row["model"] == "tuned gcn"
    assert row["published_source"] != PAPER


def test_embeddings(filled):
    document = table(filled, "embeddings")
    row = row_of(document, dataset="minesweeper", model="gcn", embedding="bgrl")
    assert row["published_mean"] == 92.35
    assert not row["best_on_validation"]
    assert row_of(document, dataset="minesweeper", model="gcn", embedding="mlp")[
        "best_on_validation"
    ]
    assert "| ECG (mlp) * |" in FORMATS["md"](document)


def test_pairs_of_unequal_precision_are_marked(made):
    made.add([0.5, 0.6, 0.7], precision="fp32")
    made.add([0.6, 0.7, 0.9], embedding="mlp", precision="bf16")
    made.add([0.6, 0.7, 0.8], embedding="identity", precision="bf16")
    document = table(made, "results")
    row = row_of(document, variant="ecg")
    assert (row["minus_baseline_unequal"], row["minus_identity_unequal"]) == (
        True,
        False,
    )
    text = FORMATS["md"](document)
    assert text.count(" † |") == 2  # ECG and identity minus the plain model
    assert "†: trained in unequal precision." in text


def test_every_table_says_when_a_gain_is_the_edges(made, filled):
    for name in ("results", "embeddings"):
        text = FORMATS["md"](table(made, name))
        assert "above the plain network, identity and the embedding" in text


def test_holm_covers_the_whole_table(filled):
    rows = table(filled, "results").rows
    columns = ("minus_baseline_p", "minus_identity_p")
    raw = [row[c] for row in rows for c in columns if row["variant"] == "ecg"]
    adjusted = [row[f"{c}_holm"] for row in rows for c in columns]
    smallest = min(p for p in adjusted if p is not None)
    assert smallest == pytest.approx(min(1, len(raw) * min(raw)))


def test_hyperparameters(filled):
    document = table(filled, "hyperparameters")
    row = row_of(document, dataset="minesweeper", model="gcn", variant="ecg")
    assert (row["layers"], row["embedding"], row["k"]) == (4, "mlp", 3)
    assert (row["paper_layers"], row["paper_embedding"]) == (4, "mlp")
    assert row["tried"] == 1
    assert "| 4 (4) |" in FORMATS["md"](document)
    resnet = row_of(document, dataset="minesweeper", model="resnet")
    assert resnet["paper_hidden"] == 512


def test_statistics_are_of_an_embedder_as_it_is_now(made):
    """Once there are newer ones of the same settings; until then the old ones count."""
    old, new = NUMERICS, MOVED["bgrl"]
    measured = dict.fromkeys(STATISTICS, 0.5)

    def homophily():
        rows = table(made, "statistics").rows
        return [row["edge_homophily"] for row in rows if row["graph"] != "G"]

    for k, share, numerics in [(3, 0.25, old), (10, 0.75, old), (3, 0.5, new)]:
        one = measured | {"edge_homophily": share}
        given = {"numerics": numerics, "statistics": one, "evolve.k": k}
        made.add([1], embedding="bgrl", task="statistics", **given)
        if numerics == old and k == 10:
            assert sorted(homophily()) == [0.25, 0.75]
    assert sorted(homophily()) == [0.5, 0.75]


def test_statistics(made):
    measured = dict.fromkeys(STATISTICS, 0.5) | {"edge_homophily": 0.789}
    again = measured | {"edge_homophily": 0.791}
    for embedding in ("mlp", "identity"):
        made.add(
            [1, 1],
            embedding=embedding,
            task="statistics",
            statistics=measured,
            **{"evolve.k": 3},
        )
    made.add([0.5] * 3, embedding="mlp", statistics=again, **{"evolve.k": 3})
    made.add([0.5], embedding="bgrl", **{"evolve.k": 10})
    document = table(made, "statistics")
    assert [row["graph"] for row in document.rows] == [
        "G",
        "G_ECG (mlp, k = 3, self-loops exclude)",
        "G_ECG (bgrl, k = 10, self-loops exclude)",
    ]
    own, mlp, bgrl = document.rows
    assert own["paper_num_edges"] == 39_402
    assert mlp["paper_edge_homophily"] == 0.79
    assert mlp["graphs"] == 3
    assert bgrl["paper_edge_homophily"] is None  # the paper's have k = 3
    assert "0.500 (0.68, −0.180)" in FORMATS["md"](document)


@pytest.mark.parametrize("name", TABLES)
def test_formats_say_the_same(filled, name):
    document = table(filled, name)
    values = json.loads(FORMATS["json"](document))
    assert values["table"] == name
    assert len(values["rows"]) == len(document.rows)
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](document))))
    assert [row["dataset"] for row in rows] == [r["dataset"] for r in document.rows]
    lines = FORMATS["md"](document).splitlines()
    assert sum(line.startswith("| ") for line in lines) == len(rows) + 2
    latex = FORMATS["latex"](document)
    assert latex.count(r" \\") == len(rows) + 1
    assert all(character not in latex for character in "±−—→×")


def test_an_empty_store_has_empty_tables(made):
    for name in TABLES:
        assert table(made, name).rows == []
        assert FORMATS["csv"](table(made, name)) == "\n"


def test_names_are_no_html(made):
    made.add([0.5, 0.6], dataset=dataset_info("<script>alert(1)</script>"))
    text = FORMATS["md"](table(made, "results"))
    assert "&lt;script>alert(1)&lt;/script>" in text
    assert "<script" not in text
