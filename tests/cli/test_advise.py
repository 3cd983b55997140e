"""``ecg-gnn advise`` from graph to answer, on graphs of all kinds."""

import json
import shlex
from functools import partial

import pytest

from csv_graphs import write_stranger
from ecg_gnn.advise import Advice, Stopwatch, question, report
from ecg_gnn.ensemble.networks import Shape
from small_runs import BOARD

ADVISE = ["advise", "--budget", "10m", "--device", "cpu"]
OPTIONS = "--dataset --data-root --budget --model --embedding --k --splits --seed "
OPTIONS += "--random-splits --device --out --json"
FILES = {"advice.md", "advice.json", "advice.png"}


@pytest.fixture
def _short(monkeypatch):
    """Four steps instead of three hundred, and narrow."""
    monkeypatch.setattr(question, "Shape", partial(Shape, steps=4))
    monkeypatch.setattr(question, "_WIDE", 8)
    monkeypatch.setattr(question, "_EMBED_STEPS", 4)


def test_help_names_every_option(ecg_gnn):
    status, out, err = ecg_gnn("advise", "--help")
    assert (status, err) == (0, "")
    for option in OPTIONS.split():
        assert option in out


@pytest.mark.usefixtures("_short")
def test_from_graph_to_answer(ecg_gnn, tmp_path):
    options = ["--dataset", BOARD, "--splits", "0-1", "--k", 3, "--out", "advice"]
    status, out, err = ecg_gnn(*ADVISE, *options)
    assert status == 0, err
    for text in (
        *("Which embedding and k?", "Does training confirm it?", "bgrl (k = 3)"),
        *("held-out nodes", "identity", "embedding", "left out: nothing."),
        *("What next?", "ecg-gnn fit --dataset", "In advice: advice.md"),
    ):
        assert text in out
    assert "[2/2] split 1: 4 trainings" in err
    assert {path.name for path in (tmp_path / "advice").iterdir()} == FILES
    written = json.loads((tmp_path / "advice/advice.json").read_text())
    assert written["trained"]["splits"] == [0, 1]
    assert len(written["criterion"]["tried"]) == 3
    assert len(written["results"]) == 4


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("kind", ["use_evolved_graph", "cannot_tell"])
def test_json_and_that_its_commands_run(ecg_gnn, monkeypatch, kind):
    monkeypatch.setattr(report, "judge", lambda *_: (kind, "made up"))
    monkeypatch.setattr(report, "cuts", lambda _: ["made up"])
    options = ["--dataset", BOARD, "--splits", "0-1", "--k", 3]
    options += ["--embedding", "features", "--json"]
    status, out, err = ecg_gnn(*ADVISE, *options)
    found = json.loads(out)
    assert (status, found["out"]) == (0, "runs/advice-minesweeper-gen"), err
    assert found["chosen"] == {"embedding": "features", "k": 3}
    assert found["verdict"] == kind
    assert len(found["next"]) == (3 if kind == "use_evolved_graph" else 2)
    for step in found["next"]:
        program, *words = shlex.split(step["command"])
        assert program == "ecg-gnn"
        short = ["--steps", 2] if "--embedding" in words else ["--budget", "2s"]
        assert ecg_gnn(*words, *short)[0] == 0, step


@pytest.mark.usefixtures("_short")
def test_an_imported_graph_with_unlabelled_nodes(ecg_gnn, tmp_path):
    write_stranger(tmp_path)
    tables = ["--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind"]
    assert ecg_gnn("data", "import", *tables, "--out", "graph")[0] == 0
    options = ["--dataset", "graph", "--splits", "0-1", "--embedding", "mlp"]
    status, out, err = ecg_gnn(*ADVISE, *options, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["homophily"]["graph"]["edge_homophily"] < 0.3
    assert (tmp_path / "runs/advice-graph/advice.png").is_file()


@pytest.mark.usefixtures("_short")
def test_interrupted(ecg_gnn, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Advice, "_compare", interrupted)
    options = ["--dataset", BOARD, "--embedding", "features", "--k", 3, "--json"]
    status, out, _ = ecg_gnn(*ADVISE, *options)
    found = json.loads(out)
    assert (status, found["stopped_by"]) == (0, "interrupted")
    assert found["criterion"]["k"] == 3
    assert found["cut"] == ["0 of 10 splits: interrupted"]


def test_a_budget_that_is_over_at_once(ecg_gnn, monkeypatch):
    monkeypatch.setattr(Stopwatch, "spent", lambda _: 1e9)
    status, out, err = ecg_gnn(*ADVISE, "--dataset", BOARD)
    assert status == 0, err
    assert "\nCannot tell within this budget: no evolved graph was" in out
    assert "--budget 40m" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--budget soon", "'budget' must be like 90s, 5m or 1h30m (got 'soon')"),
        ("--budget 0s", "'budget' must be in [1, inf)"),
        ("--dataset absent.npz", "absent.npz: cannot be read"),
        ("--dataset minesweper", "did you mean 'minesweeper'?"),
        ("--model gin", "did you mean 'gcn'?"),
        ("--model linkx", "which take evolved graphs (got 'linkx')"),
        ("--embedding oracle", "controls are added automatically (got 'oracle')"),
        ("--embedding mpl", "'embedding' must be one of ['mlp', 'bgrl'"),
        ("--k 64", "'k' must be in [1, 63], below the number of nodes (got 64)"),
        ("--k few", "Invalid value for '--k'"),
        ("--splits 0-10", "must be in [0, 9] (got 10)"),
        ("--splits one", "must be like 0-9 or 0,3,5 (got 'one')"),
        ("--device tpu", "'device' must be one of"),
        ("--seed=-1", "'seed' must be in [0,"),
        ("--out /proc/nowhere", "'out' '/proc/nowhere' cannot be written"),
    ],
)
def test_bad_options(refused, options, message):
    assert message in refused(*ADVISE, "--dataset", BOARD, *options.split())


def test_a_graph_must_be_named(refused):
    assert "--dataset" in refused("advise")
