"""The folder: claimed first, written whole, and never somebody else's."""

import json

import pytest

from advise.fake_trainer import gains, made_advice, statistics, whole_plan
from ecg_gnn.advise.advice_files import claim_folder, draw_advice, write_advice
from ecg_gnn.advise.next_steps import GraphSource
from ecg_gnn.system.checks import InputError, MissingExtraError

PNG = b"\x89PNG\r\n\x1a\n"
SOURCE = GraphSource("graph")


def test_three_files(tmp_path):
    folder = tmp_path / "a" / "b"
    claim_folder(folder)
    names = write_advice(made_advice(gains(ecg=0.05)), SOURCE, folder)
    assert names == ["advice.md", "advice.json", "advice.png"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert (folder / "advice.png").read_bytes().startswith(PNG)
    found = json.loads((folder / "advice.json").read_text())
    assert found["verdict"] == "use_evolved_graph"
    assert found["out"] == str(folder)
    assert set(found["next"][0]) == {"purpose", "command"}
    assert found["cut"] == []
    assert found["answer"].startswith("Use the evolved graph")
    assert len(found["words"]) == 4


def test_earlier_advice_is_replaced_with_its_picture(tmp_path):
    write_advice(made_advice(), SOURCE, tmp_path)
    claim_folder(tmp_path)
    names = write_advice(made_advice(budget=5.0, step=10.0), SOURCE, tmp_path)
    assert names == ["advice.md", "advice.json"]
    text = (tmp_path / "advice.md").read_text()
    assert "No figure: no split was finished." in text


def test_folders_that_are_not_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="'out' must be a folder"):
        claim_folder(tmp_path / "file")
    with pytest.raises(InputError, match="is not empty and holds no advice"):
        claim_folder(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        claim_folder(tmp_path / "file" / "below")


def test_without_matplotlib(tmp_path, monkeypatch):
    def missing(advice, path):
        raise MissingExtraError("matplotlib", "plot", "drawing a figure")

    monkeypatch.setattr("ecg_gnn.advise.advice_files.draw_advice", missing)
    assert "advice.png" not in write_advice(made_advice(), SOURCE, tmp_path)
    assert "pip install 'ecg-gnn[plot]'" in (tmp_path / "advice.md").read_text()


def test_pictures_of_little(tmp_path):
    plan = whole_plan(embeddings=("mlp",), ks=(1,), splits=1)
    nothing = dict.fromkeys(statistics())
    draw_advice(made_advice(plan=plan, graph=nothing), tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(PNG)
