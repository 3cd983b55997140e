"""What answers before torch is loaded: help, lists, and names that nothing has."""

import json
import subprocess
import sys

import typer

from csv_graphs import write_stranger
from ecg_gnn.cli.verbs import app

VERBS = typer.main.get_command(app).commands

# Runs commands one after another, and says after each what has been loaded by then.
RUN = """
import contextlib, io, json, sys
from ecg_gnn.cli import main

SLOW = {"torch", "torch_geometric", "sklearn", "scipy"}
for words in json.loads(sys.argv[1]):
    sys.argv[1:], said = words.split(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as stop:
            status = stop.code
    answer = [words, status, sorted(SLOW & set(sys.modules)), said.getvalue()]
    print(json.dumps(answer), flush=True)
"""


def run_all(commands):
    """Words, status, slow packages and output of every command."""
    line = [sys.executable, "-c", RUN, json.dumps(commands)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(answer) for answer in done.stdout.splitlines()]


def with_inner(verb):
    return [verb, *(f"{verb} {name}" for name in getattr(VERBS[verb], "commands", {}))]


def test_help_loads_nothing_that_computes():
    helps = [f"{words} --help" for verb in VERBS for words in with_inner(verb)]
    doors = ["--help", *helps, "data list", "study recipes"]
    answers = run_all(doors)
    assert [answer[:3] for answer in answers] == [[door, 0, []] for door in doors]


MISTYPED = {
    "run --dataset minesweper": "minesweeper",
    "run --model gnc": "gcn",
    "run --embedding mpl": "mlp",
    "run --gate nod": "node",
    "run --backbone tuned --norm batc": "batch",
    "homophily --dataset tolokres": "tolokers",
    "advise --dataset amazon-rating": "amazon-ratings",
    "fit --dataset texass --out model": "texas",
    "fit --dataset texas --out model --model sgae": "sage",
    "advise --dataset texas --embedding mpl": "mlp",
    "study run smoke --store s.sqlite --models sgae": "sage",
    "fit --dataset texas --out model --metric acuracy": "accuracy",
    "study run smok --store s.sqlite": "smoke",
    "study table reslts --store s.sqlite": "results",
    "data info actr": "actor",
    "run --device cdua": "cuda",
    "data import --nodes n.csv --edges e.csv --encoding rwa --out graph": "raw",
}


def test_a_mistyped_name_is_corrected_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = run_all(list(MISTYPED))
    assert [answer[:3] for answer in answers] == [[words, 2, []] for words in MISTYPED]
    for words, _, _, said in answers:
        assert f"; did you mean {MISTYPED[words]!r}?)" in said
    assert not list(tmp_path.iterdir())


ABSENT = (
    "predict model --out out.csv",
    "explain model --node n1",
    "score out.csv truth.csv",
    "data import --nodes n.csv --edges e.csv --label y --out graph",
    "data check graph.npz",
)


def test_what_is_not_there_is_missed_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, status, loaded, said in run_all(list(ABSENT)):
        assert (status, loaded) == (2, []), words
        assert "does not exist" in said or "No such file" in said


def test_names_of_another_kind_are_not_corrected():
    """What is right elsewhere is no typing error."""
    (answer,) = run_all(["run --backbone tuned --model gt"])
    assert answer[1] == 2
    assert "did you mean" not in answer[3]


def test_tables_and_graphs_are_read_without_pyg(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_stranger(tmp_path)
    files = "--nodes nodes.csv --edges edges.csv --label kind"
    chosen = "--features f1,f2,f3,city"  # without texts, which scikit-learn counts
    words = f"data import {files} {chosen} --out graph"
    for _, status, loaded, said in run_all([words, "homophily --dataset graph"]):
        assert (status, loaded) == (0, ["scipy", "torch"]), said
