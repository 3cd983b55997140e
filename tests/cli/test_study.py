"""``ecg-gnn study``: its verbs, its JSON, and what it says of mistakes."""

import json

import pytest
import yaml

from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import duration
from small_runs import BOARD
from small_studies import SMALL_RECIPE, HandmadeStore

VERBS = {
    ("study", "run"): "RECIPE --store --datasets --models --variants --splits --jobs "
    "--engine --address --search --trials --prune --search-seed "
    "--device --data-root --set --retry-failed --json",
    ("study", "status"): "--store --recipe --errors --json",
    ("study", "merge"): "FILE --store --curves --json",
    ("study", "table"): "TABLE --store --recipe --format --out",
    ("study", "export"): "--store --out --curve-points",
    ("study", "recipes"): "--json",
}


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "small.yaml"
    small = SMALL_RECIPE | {
        "models": ["gcn"],
        "variants": ["baseline", "mlp", "identity"],
    }
    path.write_text(yaml.safe_dump(small))
    return path


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_names_every_option(ecg_gnn, verb):
    status, out, err = ecg_gnn(*verb, "--help")
    assert (status, err) == (0, "")
    for option in VERBS[verb].split():
        assert option in out


def test_recipes(ecg_gnn):
    status, out, _ = ecg_gnn("study", "recipes", "--json")
    assert status == 0
    assert {row["name"] for row in json.loads(out)} >= {"paper-best", "smoke"}
    lines = ecg_gnn("study", "recipes")[1].splitlines()
    assert "paper-grid" in lines
    assert max(map(len, lines)) <= 88


def test_variants_with_commas_are_several_unless_the_recipe_has_them_as_one(
    ecg_gnn, recipe
):
    values = yaml.safe_load(recipe.read_text())
    values |= {"variants": ["baseline", "mlp", "bgrl", "mlp,bgrl", "identity"]}
    recipe.write_text(yaml.safe_dump(values))

    def run(*names):
        chosen = [word for name in names for word in ("--variants", name)]
        command = ["study", "run", recipe, "--store", "s.sqlite", "--splits", "0"]
        status, _, err = ecg_gnn(*command, *chosen)
        with Store.open("s.sqlite") as store:
            found = {record.configuration.embedding for record in store.records()}
        return status, found, err

    assert run("baseline, identity")[:2] == (0, {None, "identity"})
    assert run("mlp, bgrl")[:2] == (0, {None, "identity", "mlp,bgrl"})
    assert run("bgrl,mlp")[:2] == (0, {None, "identity", "mlp,bgrl", "bgrl", "mlp"})
    status, _, err = run("mlp,magic")
    assert status == 2
    assert "(got 'magic')" in err


def test_settings_on_the_command_line_win(ecg_gnn, recipe):
    command = ["study", "run", recipe, "--store", "s.sqlite", "--splits", "0"]
    assert ecg_gnn(*command, "--set", "train.steps=2", "--variants", "baseline")[0] == 0
    with Store.open("s.sqlite") as store:
        (record,) = store.records()
    assert record.configuration.config["train"]["steps"] == 2
    assert record.result.best_step <= 2
    status, _, err = ecg_gnn(*command, "--set", "steps=2")
    assert status == 2
    assert "'train.steps'" in err
    assert "(got 'steps'; did you mean 'train.steps'?)" in err


def test_from_recipe_to_tables(ecg_gnn, recipe, tmp_path):
    command = ["study", "run", recipe, "--store", "s.sqlite"]
    status, out, err = ecg_gnn(*command, "--splits", "0", "--json")
    report = json.loads(out)
    assert (status, report["ran"]) == (0, 3)
    assert report["counts"] == {"total": 3, "done": 3, "failed": 0, "running": 0}
    assert "[3/3] minesweeper-gen" in err.replace("\n", " ")
    assert " s left" in err
    status, out, err = ecg_gnn(*command)
    assert "6 of 6 done, 3 of them now" in out
    assert err.startswith("6 units: 3 done\n")
    status, out, _ = ecg_gnn("study", "status", "--store", "s.sqlite", "--json")
    found = json.loads(out)
    assert found["total"] == {"done": 6, "failed": 0, "running": 0, "missing": 0}
    assert {row["embedding"] for row in found["rows"]} == {None, "mlp", "identity"}
    _, out, _ = ecg_gnn("study", "status", "--store", "s.sqlite")
    assert "ECG (mlp)" in out
    _, out, _ = ecg_gnn("study", "table", "results", "--store", "s.sqlite")
    assert out.startswith("# Results")
    ecg_gnn("study", "table", "embeddings", "--store", "s.sqlite", "--out", "e.csv")
    assert (tmp_path / "e.csv").read_text().startswith("dataset,model,variant")
    options = ["--store", "s.sqlite", "--format", "latex", "--recipe", "small"]
    assert r"\toprule" in ecg_gnn("study", "table", "statistics", *options)[1]
    with Store.open("s.sqlite") as store:
        made = store.records()[0].result.provenance
    assert made["command"].startswith("ecg-gnn study run ")
    _, out, _ = ecg_gnn("study", "merge", "s.sqlite", "--store", "m.sqlite", "--json")
    assert json.loads(out)["added"] == 6
    _, out, _ = ecg_gnn("study", "merge", "s.sqlite", "--store", "m.sqlite")
    assert "6 records (0 new), 0 failures" in out


def test_a_store_as_text_is_read_like_a_store(ecg_gnn, refused, tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5, 0.75])
    made.writer.close()
    command = ["study", "export", "--store", "s.sqlite", "--out"]
    assert ecg_gnn(*command, "s.jsonl")[1] == "Wrote s.jsonl: 2 units\n"
    tables = [
        ecg_gnn("study", "table", "results", "--store", name)[1]
        for name in ("s.sqlite", "s.jsonl")
    ]
    assert tables[0] == tables[1]
    _, out, _ = ecg_gnn("study", "status", "--store", "s.jsonl", "--json")
    assert json.loads(out)["total"]["done"] == 2
    ecg_gnn("study", "report", "--store", "s.jsonl")
    _, out, _ = ecg_gnn("study", "merge", "s.jsonl", "--store", "m.sqlite", "--json")
    assert json.loads(out)["added"] == 2
    assert "'out' must end in '.jsonl'" in refused(*command, "s.json")
    assert "'curve_points' must be in" in refused(
        *command, "t.jsonl", "--curve-points", "-1"
    )
    assert "must be a database to be filled" in refused(
        "study", "run", "smoke", "--store", "s.jsonl"
    )
    (tmp_path / "s.jsonl").write_text("[]")
    assert "cannot be read (line 1" in refused("study", "status", "--store", "s.jsonl")


def test_absent_data_is_said(ecg_gnn, recipe, tmp_path):
    values = yaml.safe_load(recipe.read_text())
    values |= {"datasets": ["tolokers", BOARD], "variants": ["baseline"]}
    recipe.write_text(yaml.safe_dump(values))
    options = ["--store", "s.sqlite", "--data-root", tmp_path]
    status, out, err = ecg_gnn("study", "run", recipe, *options)
    assert status == 0
    assert "skipping tolokers: tolokers.npz is not in" in err
    assert "2 of 2 done" in out


def test_failures_are_shown(ecg_gnn, tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([None], embedding="mlp")
    (unit,) = [
        row["id"] for row in made.writer._connection.execute("SELECT id FROM units")
    ]
    made.writer.fail(unit, "out_of_memory", "CUDA is full", {})
    made.writer.close()
    status, out, _ = ecg_gnn("study", "status", "--store", "s.sqlite", "--errors")
    assert status == 0
    assert "CUDA is full" in out
    _, out, _ = ecg_gnn("study", "status", "--store", "s.sqlite", "--json")
    assert json.loads(out)["failures"][0]["kind"] == "out_of_memory"


def test_mistakes_are_one_line(refused, recipe):
    store = ["--store", "s.sqlite"]
    assert "'recipe' must be a YAML file or one of" in refused(
        "study", "run", "nothing", *store
    )
    assert "'models' must be among those" in refused(
        "study", "run", recipe, *store, "--models", "gat"
    )
    assert "'datasets' must be among those" in refused(
        "study", "run", recipe, *store, "--datasets", "tolokers,texas"
    )
    assert "'splits' must be like" in refused(
        "study", "run", recipe, *store, "--splits", "a"
    )
    assert "'split' of" in refused("study", "run", recipe, *store, "--splits", "99")
    assert "'device' must be one of" in refused(
        "study", "run", recipe, *store, "--device", "tpu"
    )
    assert "does not exist" in refused("study", "status", *store)
    assert "does not exist" in refused("study", "table", "results", *store)
    assert "'table' must be one of" in refused("study", "table", "result", *store)
    assert "'format' must be one of" in refused(
        "study", "table", "results", *store, "--format", "html"
    )
    assert "does not exist" in refused("study", "merge", "a.sqlite", *store)
    assert "store" in refused("study", "status")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4, "4 s"), (600, "10 min"), (9000, "2.5 h"), (200_000, "2.3 days")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
