"""Recipes that ask for too much, and recipes that name graph folders."""

from dataclasses import replace

import pytest

from ecg_gnn.reading import read_yaml
from ecg_gnn.study import run_study
from ecg_gnn.study.grid import Only
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import load_named_graph
from small_studies import small_recipe


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"seeds": range(200_000), "variants": ["baseline"]}, 400_000),
        ({"seeds": range(5), "grid": {"train.lr": range(1, 9001)}}, 450_000),
    ],
)
def test_a_huge_recipe_is_refused_with_a_count(tmp_path, asked, count):
    grid = {name: list(values) for name, values in asked.get("grid", {}).items()}
    asked = asked | {"seeds": list(asked["seeds"]), "grid": grid, "models": ["gcn"]}
    said = rf"must ask for at most 150000 trainings \(got {count}\)"
    with pytest.raises(InputError, match=said):
        run_study(small_recipe(**asked), tmp_path / "s.sqlite")
    assert not list(tmp_path.iterdir())


def test_a_long_text_is_not_even_parsed():
    with pytest.raises(InputError, match=r"at most 1000000 characters \(got 2000003"):
        read_yaml("r", f"[{'1,' * 1_000_000}1]")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two graph folders of one name, of different graphs."""
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        graph = load_named_graph(f"csbm:nodes=60,seed={seed}")
        graph.save(tmp_path / str(seed) / "own")
    return tmp_path


def test_recipes_name_graph_folders(folders, monkeypatch):
    store, shas = folders / "s.sqlite", []
    for seed in (0, 1):
        monkeypatch.chdir(folders / str(seed))
        recipe = small_recipe(datasets=["own"], models=["gcn"], variants=["baseline"])
        assert run_study(recipe, store).ran == 2
        again = replace(recipe, parts=(replace(recipe.parts[0], datasets=("./own/",)),))
        assert run_study(again, store, only=Only(datasets=("./own/",))).ran == 0
        shas.append(load_named_graph("own").dataset.sha256)
    with Store.open(store) as opened:
        graphs = [(each.name, each.sha256) for each in opened.datasets()]
    assert graphs == [("own", sha) for sha in shas]
    assert len(set(shas)) == 2


def test_a_folder_without_a_graph_is_no_dataset(folders):
    with pytest.raises(InputError, match=r"or one of .* \(got '0'\)"):
        small_recipe(datasets=["0"])
