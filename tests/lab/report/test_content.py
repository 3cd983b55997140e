"""What the page is made of: tables, details behind every row, plots."""

import html
import json
import re
from types import SimpleNamespace

import pytest

from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.report import gather, render_report
from ecg_gnn_lab.report.summary import verdict
from ecg_gnn_lab.tables import StudyTables
from reported_studies import fail_the_rest, fill
from small_studies import HandmadeStore, dataset_info


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = fill(tmp_path_factory.mktemp("store") / "s.sqlite")
    with Store.open(path) as store:
        return gather(StudyTables(store))


def gathered(path, recipe=None):
    with Store.open(path) as store:
        return gather(StudyTables(store, recipe))


def sheet(content, name):
    return next(sheet for sheet in content.sheets if sheet.name == name)


def column(content, name, title):
    """The cells of a column of the page: classes, sort value, text."""
    place = sheet(content, name).texts()[0].index(title)
    table = render_report(content).partition(f'id="{name}-table"')[2]
    rows = table.partition("</table>")[0].split("<tr")[2:]
    cells = [re.findall(r"(?s)<td.*?</td>", row)[place] for row in rows]
    return [
        SimpleNamespace(
            classes=re.search(r'class="(.*?)"', cell)[1].split(),
            sort=(re.findall(r'data-sort="(.*?)"', cell) or [None])[0],
            text=re.sub(r"<.*?>", "", cell),
        )
        for cell in cells
    ]


def test_every_table_is_there_with_its_heading(content):
    assert [sheet.name for sheet in content.sheets] == [
        "results",
        "leaderboard",
        "embeddings",
        "hyperparameters",
        "statistics",
    ]


def test_numbers_sort_as_numbers(content):
    test = column(content, "results", "ours (%)")
    assert all("number" in cell.classes for cell in test)
    assert test[0].text.startswith(f"{float(test[0].sort):.2f} ± ")
    paper = column(content, "results", "published (%)")
    assert [cell.sort for cell in paper[:3]] == ["89.75", "92.63", None]
    assert ["none" in cell.classes for cell in paper[:3]] == [False, False, True]
    edges = column(content, "statistics", "edges")
    assert all("number" in cell.classes for cell in edges)
    names = column(content, "results", "dataset")
    assert names[0].sort == "minesweeper"
    assert ["same" in cell.classes for cell in names[:2]] == [False, True]
    sure = column(content, "results", "− baseline [95% CI]")
    assert ["sure" in cell.classes for cell in sure[:2]] == [False, True]


def test_what_the_paper_does_not_have_has_no_column(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5, 0.6], dataset=dataset_info("own", "2" * 64))
    made.writer.close()
    results = sheet(gathered(tmp_path / "s.sqlite"), "results")
    assert results.texts()[0] == ["dataset", "model", "variant", "n", "ours (%)"]


def test_every_score_has_details(content):
    for each in content.sheets:
        ids = {row["configuration"] for row in each.rows if row.get("configuration")}
        assert ids <= content.details.keys()
    assert len(content.details) == 16  # one for each cell


def test_details_of_a_cell(content):
    row = content.tiles["minesweeper", "gcn"]
    detail = content.details[row["configuration"]]
    assert detail["title"] == "ECG (mlp)"
    assert detail["subtitle"] == "minesweeper · gcn · ROC AUC"
    records = detail["records"]
    assert records["titles"][:4] == ["split", "seed", "validation (%)", "test (%)"]
    assert records["rows"][1] == ["1", "0", "93.05", "93.05", "7", "1.5", "—"]
    assert [test["against"] for test in detail["tests"]] == ["baseline", "identity"]
    assert detail["tests"][0]["values"][0][1].startswith("+2.28 [")
    assert dict(detail["settings"])["evolve.k"] == "3"
    assert detail["provenance"] == [("torch", "2.0")]
    options, comment = detail["command"]
    assert options.startswith("ecg-gnn run --dataset minesweeper ")
    assert comment == ""


def test_verdicts_of_the_overview(content):
    kinds = {key: verdict(row) for key, row in content.tiles.items()}
    assert kinds["minesweeper", "gcn"] == "unasked"
    assert kinds["minesweeper", "sage"] == "beaten"
    assert content.lede.startswith("ECG is above its plain model by more than chance")
    assert "2 above baseline and identity, no embedding control" in content.lede


def test_a_control_has_a_column_where_it_was_run(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    tests = {None: 0.5, "mlp": 0.7, "identity": 0.6, "input:mlp,identity": 0.65}
    for embedding, test in tests.items():
        made.add([test, test + 0.01, test - 0.01], embedding=embedding)
    made.writer.close()
    found = gathered(tmp_path / "s.sqlite")
    titles = [column.title for column in found.sheets[0].columns]
    assert titles[5:8] == [
        f"− {control} [95% CI]" for control in ("baseline", "identity", "embedding")
    ]
    assert "</span>embedding</span>" in render_report(found)
    assert ">− embedding<" in found.pictures["effects"]


def test_no_control_has_no_column(content):
    titles = [column.title for column in content.sheets[0].columns]
    assert "− identity [95% CI]" in titles
    assert "− embedding [95% CI]" not in titles
    assert "</span>embedding</span>" not in render_report(content)


def test_what_must_be_said_of_a_graph_is_said_at_once(content):
    assert content.notes == {"own-graph": "a note"}


def test_machines_are_named_where_they_are_known(tmp_path, content):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5, 0.6])
    made.writer._connection.execute(
        """UPDATE records SET provenance = '{"device_name": "a GPU"}'"""
    )
    made.writer.close()
    assert gathered(tmp_path / "s.sqlite").facts["on"] == "a GPU"
    assert "on" not in content.facts


def test_pictures_are_those_of_the_figures(content):
    assert set(content.pictures) == {"effects", "curves", "homophily"}
    assert "gcn, ECG (mlp)" in content.pictures["effects"]
    assert "own-graph · sage" in content.pictures["curves"]
    assert "adjusted" in content.pictures["homophily"]


def test_a_grid_names_what_was_tried(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for layers, val in ((1, 0.6), (2, 0.7), (3, 0.65)):
        made.add([0.5, 0.5], vals=[val, val], **{"model.layers": layers})
    made.writer.close()
    (detail,) = gathered(tmp_path / "s.sqlite").details.values()
    assert detail["tried"]["count"] == 3
    assert detail["tried"]["rows"] == [
        ["model.layers 2", "70.00"],
        ["model.layers 3", "65.00"],
        ["model.layers 1", "60.00"],
    ]


def test_parts_of_a_study(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    with pytest.raises(InputError, match="nothing to report"):
        gathered(tmp_path / "s.sqlite")
    made.add([None, None], embedding="mlp", recipe="broken")
    fail_the_rest(made, "")
    failed = gathered(tmp_path / "s.sqlite")
    assert {each.name for each in failed.sheets} == {"statistics"}
    assert "failed" in failed.facts
    measured = {"task": "statistics", "recipe": "measured"}
    made.add([0.0], embedding="bgrl", **measured)
    made.add([0.5], embedding="mlp", recipe="alone")
    made.writer.close()
    only = gathered(tmp_path / "s.sqlite", "measured")
    assert [each.name for each in only.sheets] == ["statistics"]
    alone = gathered(tmp_path / "s.sqlite", "alone")
    assert verdict(alone.tiles["minesweeper", "gcn"]) == "open"
    assert "effects" not in alone.pictures
    with pytest.raises(InputError, match="'recipe' must be one of"):
        gathered(tmp_path / "s.sqlite", "nothing")


def test_everything_is_json(content):
    json.dumps(content.details, allow_nan=False)


# --- The leaderboard's cards ----------------------------------------------------------


def cards(content):
    """The text of every card of the leaderboard."""
    articles = re.findall(r"(?s)<article.*?</article>", render_report(content))
    texts = [re.sub(r"<.*?>", " ", each) for each in articles]
    return [" ".join(text.split()) for text in texts[len(content.answers) :]]


def card_of(tmp_path, *cells):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for tests, settings in cells:
        made.add(tests, **settings)
    made.writer.close()
    (card,) = cards(gathered(tmp_path / "s.sqlite"))
    return card


def test_our_best_stands_beside_the_best_published(content):
    official, own = cards(content)
    assert official.startswith("minesweeper ROC AUC our best 92.5")
    assert "gcn, ECG (mlp) best published 99.07 ± 0.25 CSNN −6.5" in official
    assert official.endswith(" points on 4 splits.")
    assert "best published" not in own
    assert own.endswith("4 splits, nothing published.")


def test_our_side_opens_its_records_and_the_other_names_its_source(content):
    page = html.unescape(render_report(content))
    sides = re.findall(r'class="side.*?" data-detail="(.*?)"', page)
    assert [content.details[id_]["title"] for id_ in sides] == ["ECG (mlp)"] * 2
    assert 'class="side" title="CSNN paper, table 1"' in page


def test_a_row_with_labels_as_input_is_never_the_headline(tmp_path):
    labels = {"model.backbone": "tuned", "train.label_input": 0.5}
    card = card_of(tmp_path, ([0.9, 0.9], {}), ([0.995, 0.995], labels))
    assert card.startswith("minesweeper ROC AUC our best 90.00 ± 0.00 gcn")
    assert card.endswith("−9.07 points on 2 splits.")


def test_equal_published_results_are_all_named(tmp_path):
    card = card_of(tmp_path, ([0.8], {"dataset": dataset_info("tolokers")}))
    assert card.endswith("NT* and Polynormer-r −5.91 points on 1 split.")


def test_the_substitute_has_no_other_side(tmp_path):
    glove = {"dataset": dataset_info("roman-empire-glove", note="other features")}
    card = card_of(tmp_path, ([0.8, 0.8], glove))
    assert "best published" not in card
    assert card.endswith("2 splits, nothing published.")
