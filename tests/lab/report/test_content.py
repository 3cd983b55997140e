"""What the page is made of: tables, details behind every row, plots."""

import json
import re

import pytest

from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.report import gather
from ecg_gnn_lab.report.sheets import sheet_of
from ecg_gnn_lab.tables import StudyTables, make_table
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
    found = sheet(content, name)
    place = [each.title for each in found.columns].index(title)
    return [line.fields[place] for line in found.lines]


def test_every_table_is_there_with_its_heading(content):
    assert [sheet.name for sheet in content.sheets] == [
        "results",
        "leaderboard",
        "embeddings",
        "hyperparameters",
        "statistics",
        "failures",
    ]


def test_numbers_sort_as_numbers(content):
    test = column(content, "results", "ours (%)")
    assert all(isinstance(field.sort, float) for field in test)
    assert test[0].text.startswith(f"{test[0].sort:.2f} ± ")
    paper = column(content, "results", "published (%)")
    assert [field.sort for field in paper[:3]] == [89.75, 92.63, None]
    edges = column(content, "statistics", "edges")
    assert all(isinstance(field.sort, float) for field in edges)
    names = column(content, "results", "dataset")
    assert names[0].sort == "minesweeper"
    assert [field.same for field in names[:2]] == [False, True]


def test_what_the_paper_does_not_have_has_no_column(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5, 0.6], dataset=dataset_info("own", "2" * 64))
    made.writer.close()
    found = sheet(gathered(tmp_path / "s.sqlite"), "results")
    titles = [each.title for each in found.columns]
    assert titles == ["dataset", "model", "variant", "n", "ours (%)"]


def test_every_row_has_details(content):
    details = content.details
    for each in content.sheets:
        for line in each.lines:
            assert line.detail in details
    assert (
        len(details) == 16 + 4 + 2 + 1 + 1
    )  # cells, graphs, datasets, failure, published


def test_details_of_a_cell(content):
    tile = content.tiles["minesweeper", "gcn"]
    detail = content.details[tile.detail]
    assert detail["title"] == "ECG (mlp)"
    assert detail["subtitle"] == "minesweeper · gcn · ROC AUC"
    assert ("published", "92.63 ± 0.10") in detail["facts"]
    records = detail["records"]
    assert records["titles"][:4] == ["split", "seed", "validation (%)", "test (%)"]
    assert records["rows"][1] == ["1", "0", "93.05", "93.05", "7", "1.5"]
    assert [test["against"] for test in detail["tests"]] == ["baseline", "identity"]
    assert dict(detail["tests"][0]["values"])["mean difference"] == "+2.28 points"
    assert dict(detail["settings"])["evolve.k"] == "3"
    assert detail["provenance"] == [("torch", "2.0")]
    packed = detail["commands"]
    commands = [packed["head"] + m + packed["tail"] for m in packed["middle"]]
    assert len(commands) == 4
    assert commands[2].startswith("ecg-gnn run --dataset minesweeper ")
    assert commands[2].endswith("--splits 2 --seed 0")


def test_verdicts_of_the_overview(content):
    kinds = {key: tile.verdict.kind for key, tile in content.tiles.items()}
    assert kinds["minesweeper", "gcn"] == "edges"
    assert kinds["minesweeper", "sage"] == "beaten"
    assert content.lede.startswith("ECG is above its plain model by more than chance")
    assert "in 2 of these it is also above identity" in content.lede


def test_what_must_be_said_of_a_graph_is_said_at_once(content):
    assert content.notes == {"own-graph": "a note"}


def test_machines_are_named_where_they_are_known(tmp_path, content):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5, 0.6])
    made.writer._connection.execute(
        """UPDATE records SET provenance = '{"device_name": "a GPU"}'"""
    )
    made.writer.close()
    assert ("on", "a GPU") in gathered(tmp_path / "s.sqlite").facts
    assert "on" not in dict(content.facts)


def test_pictures_are_those_of_the_figures(content):
    assert set(content.pictures) == {"effects", "curves", "homophily", "leaderboard"}
    assert "gcn, ECG (mlp)" in content.pictures["effects"]
    assert "own-graph · sage" in content.pictures["curves"]
    assert "adjusted homophily" in content.pictures["homophily"]
    board = content.pictures["leaderboard"]
    assert "best published: CSNN" in board
    assert "gcn, ECG (mlp) *" in board


def test_a_picture_is_an_element_with_ids_of_its_own(content):
    ids = [
        found
        for picture in content.pictures.values()
        for found in re.findall(r'\bid="([^"]*)"', picture)
    ]
    assert len(set(ids)) == len(ids)
    for name, picture in content.pictures.items():
        assert picture.startswith("<svg ")
        assert picture.endswith("</svg>")
        referred = re.findall(r'(?:href="#|url\(#)([^")]*)', picture)
        assert referred
        assert set(referred) <= set(ids)
        assert all(each.startswith(f"{name}-") for each in referred)
        assert "<metadata" not in picture
        assert "<style" not in picture


def test_a_failure_keeps_its_error(content):
    (line,) = sheet(content, "failures").lines
    detail = content.details[line.detail]
    assert detail["error"] == "first line\nCUDA is full"
    assert "CUDA is full" in [field.text for field in line.fields]


def test_a_grid_names_what_was_tried(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for layers, val in ((1, 0.6), (2, 0.7), (3, 0.65)):
        made.add([0.5, 0.5], vals=[val, val], **{"model.layers": layers})
    made.writer.close()
    (detail,) = [
        found
        for found in gathered(tmp_path / "s.sqlite").details.values()
        if "tried" in found
    ]
    assert detail["tried"] == {
        "titles": ["model.layers", "validation (%)"],
        "rows": [["2", "70.00"], ["3", "65.00"], ["1", "60.00"]],
        "left_out": 0,
    }


def test_parts_of_a_study(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    with pytest.raises(InputError, match="nothing to report"):
        gathered(tmp_path / "s.sqlite")
    made.add([None, None], embedding="mlp", recipe="broken")
    fail_the_rest(made, "")
    failed = gathered(tmp_path / "s.sqlite")
    assert {each.name for each in failed.sheets} == {"statistics", "failures"}
    assert "cannot be said" in failed.lede
    measured = {"task": "statistics", "recipe": "measured"}
    made.add([0.0], embedding="bgrl", **measured)
    made.add([0.5], embedding="mlp", recipe="alone")
    made.writer.close()
    only = gathered(tmp_path / "s.sqlite", "measured")
    assert [each.name for each in only.sheets] == ["statistics"]
    alone = gathered(tmp_path / "s.sqlite", "alone")
    assert alone.tiles["minesweeper", "gcn"].verdict.kind == "open"
    assert "effects" not in alone.pictures
    with pytest.raises(InputError, match="'recipe' must be one of"):
        gathered(tmp_path / "s.sqlite", "nothing")


def test_everything_is_json(content):
    json.dumps(content.details, allow_nan=False)


def test_empty_documents_make_empty_sheets(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        found = sheet_of(make_table("results", store), "Results", lambda row: None)
    assert (found.columns, found.lines) == ([], [])


# --- The leaderboard's cards ----------------------------------------------------------


def leaders_of(tmp_path, *cells):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for tests, settings in cells:
        made.add(tests, **settings)
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        return gather(StudyTables(store)).leaders


def test_our_best_stands_beside_the_best_published(content):
    official, own = content.leaders
    assert (official.dataset, official.metric) == ("minesweeper", "ROC AUC")
    assert official.ours.name == "gcn, ECG (mlp)"
    assert official.published.name == "CSNN"
    assert official.published.score == "99.07 ± 0.25"
    assert official.gap.startswith("−6.5")
    assert official.gap.endswith(" points on 4 splits")
    assert not official.ahead
    assert own.published is None
    assert own.gap == "4 splits, nothing published"


def test_every_side_opens_something(content):
    details = content.details
    for leader in content.leaders:
        assert details[leader.ours.detail]["title"].startswith("ECG")
    source = details[content.leaders[0].published.detail]
    assert source["title"] == "best published: CSNN"
    assert source["source"] == [("source", "CSNN paper, table 1")]


def test_where_labels_are_input_the_best_without_is_named(tmp_path):
    labels = {"model.backbone": "tuned", "train.label_input": 0.5}
    cells = [([0.9, 0.9], {}), ([0.995, 0.995], labels)]
    (leader,) = leaders_of(tmp_path, *cells)
    assert leader.ahead
    assert leader.gap == (
        "+0.43 points on 2 splits. Without labels as input: gcn, 90.00 ± 0.00"
    )


def test_equal_published_results_are_all_named(tmp_path):
    (leader,) = leaders_of(tmp_path, ([0.8], {"dataset": dataset_info("tolokers")}))
    assert leader.published.name == "NT* and Polynormer-r"
    assert leader.gap == "−5.91 points on 1 split"


def test_the_substitute_has_no_other_side(tmp_path):
    glove = {"dataset": dataset_info("roman-empire-glove", note="other features")}
    (leader,) = leaders_of(tmp_path, ([0.8, 0.8], glove))
    assert leader.published is None
    assert leader.gap == "2 splits, nothing published with these features"
