"""The verdict follows the intervals, and the folder is written whole."""

import json
import shlex

import pytest

from advise.advised import advice_on
from ecg_gnn.advise.advice import DIFFERENCES, Difference
from ecg_gnn.advise.criterion import Gain
from ecg_gnn.advise.question import Candidate
from ecg_gnn.advise.report import claim_folder, judge, write_advice
from ecg_gnn.data import csbm
from ecg_gnn.system.checks import InputError, MissingExtraError

PNG = b"\x89PNG\r\n\x1a\n"
SOURCE = ["--dataset", "my graph.npz", "--data-root", "some/where"]
UP, NONE, OPEN = (0.02, 0.01, 0.03), (0.0, -0.005, 0.005), (0.01, -0.02, 0.04)
GAIN = Gain(Candidate("mlp", 10), 0.05, 0.02, 0.08, 0.1)
NO_GAIN = Gain(Candidate("mlp", 10), 0.0, -0.001, 0.001, 0.0)
UNSURE = Gain(Candidate("mlp", 10), 0.01, -0.1, 0.2, 0.0)


@pytest.mark.parametrize(
    ("gain", "leads", "kind"),
    [
        (GAIN, (UP, UP, UP), "use_evolved_graph"),
        (NO_GAIN, (UP, UP, UP), "use_evolved_graph"),
        (GAIN, (UP, NONE, UP), "path_not_edges"),
        (GAIN, (UP, UP, NONE), "embedding_not_edges"),
        (GAIN, (UP, UP, OPEN), "cannot_tell"),
        (GAIN, (UP, OPEN, NONE), "no_help"),
        (GAIN, (NONE, UP, UP), "no_help"),
        (GAIN, (OPEN, NONE, UP), "no_help"),
        (GAIN, (UP, OPEN, UP), "cannot_tell"),
        (GAIN, (OPEN, UP, UP), "cannot_tell"),
        (GAIN, (None, None, None), "use_evolved_graph"),
        (NO_GAIN, (None, None, None), "no_help"),
        (UNSURE, (None, None, None), "cannot_tell"),
        (None, (None, None, None), "cannot_tell"),
    ],
)
def test_verdicts(gain, leads, kind):
    found = [lead and Difference(*lead) for lead in leads]
    assert judge(gain, *found)[0] == kind


@pytest.fixture(scope="module")
def advice():
    graph = csbm(nodes=120, homophily=0.3, features=4)
    return advice_on(graph, embeddings=("features",), steps=4, model="gat")


def test_three_files_of_plain_values(advice, tmp_path):
    folder = tmp_path / "a" / "b"
    claim_folder(folder)
    found, _ = write_advice(advice, SOURCE, folder)
    assert json.loads(json.dumps(found)) == json.loads(
        (folder / "advice.json").read_text()
    )
    assert (folder / "advice.png").read_bytes().startswith(PNG)
    text = (folder / "advice.md").read_text()
    for part in (
        found["answer"],
        "| ECG (features, k = 5) | ",
        "advice.png",
        "- baseline",
    ):
        assert part in text.replace("−", "-")
    assert found["criterion"]["embedding"] == "features"
    assert set(found["criterion"]) == {
        *("gain", "interval", "embedding", "k", "recommend", "over_plain", "tried")
    }
    assert set(found["held_out"]) == set(found["tests"]) > set(DIFFERENCES)
    rows = {row["variant"]: row for row in found["results"]}
    assert list(rows) == ["baseline", "identity", "ecg", "embedding"]
    assert (rows["ecg"]["k"], rows["identity"]["k"]) == (5, None)
    assert 0 < rows["ecg"]["test_mean"] < 1


def test_what_to_do_next(advice, tmp_path, monkeypatch):
    for kind in ("use_evolved_graph", "no_help"):
        monkeypatch.setattr(
            "ecg_gnn.advise.report.judge", lambda *_, kind=kind: (kind, "made up")
        )
        steps = write_advice(advice, SOURCE, tmp_path)[0]["next"]
        words = [shlex.split(step["command"]) for step in steps]
        ours = ["--out", "model", "--seed", "0"]
        assert words[0] == ["ecg-gnn", "fit", *SOURCE, *ours]
        if kind == "no_help":
            assert len(words) == 1
            continue
        evolved = ["--model", "gat", "--embedding", "features", "--k", "5"]
        assert [each[1] for each in words] == ["fit", "fit", "run"]
        assert all(each[6:12] == evolved for each in words[1:])


def test_earlier_advice_is_replaced_with_its_picture(advice, tmp_path, monkeypatch):
    write_advice(advice, SOURCE, tmp_path)
    claim_folder(tmp_path)

    def missing(*_):
        raise MissingExtraError("matplotlib", "plot", "drawing a figure")

    monkeypatch.setattr("ecg_gnn.advise.report.draw", missing)
    write_advice(advice, SOURCE, tmp_path)
    assert not (tmp_path / "advice.png").exists()
    assert "pip install 'ecg-gnn[plot]'" in (tmp_path / "advice.md").read_text()


def test_folders_that_are_not_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="'out' must be a folder"):
        claim_folder(tmp_path / "file")
    with pytest.raises(InputError, match="is not empty and holds no advice"):
        claim_folder(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        claim_folder(tmp_path / "file" / "below")
