"""The leaderboard of the page: cards, the plot's rows, what is behind the published."""

import pytest

from ecg_gnn.study.report import gather
from ecg_gnn.study.store import Store
from reported_studies import fill
from small_studies import HandmadeStore, dataset_info


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = fill(tmp_path_factory.mktemp("store") / "s.sqlite")
    with Store.open(path) as store:
        return gather(store)


def leaders_of(tmp_path, *cells):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for tests, settings in cells:
        made.add(tests, **settings)
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        return gather(store).leaders


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
    details = content.data["details"]
    for leader in content.leaders:
        assert details[leader.ours.detail]["title"].startswith("ECG")
    source = details[content.leaders[0].published.detail]
    assert source["title"] == "best published: CSNN"
    assert source["source"] == [("source", "CSNN paper, table 1")]


def test_the_plot_has_the_rows_of_the_table(content):
    board, own = content.data["leaderboard"]
    assert [row["kind"] for row in board["rows"]] == ["published", *4 * ["ours"]]
    assert board["rows"][0]["published_mean"] == 99.07
    assert [row["best"] for row in board["rows"]].count(True) == 1
    assert all(row["published_mean"] is None for row in own["rows"])


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
