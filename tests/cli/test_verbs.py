"""Every verb, its options and its JSON."""

import json
import sys

import numpy as np
import pytest

from ecg_gnn.config.run_config import read_splits
from small_runs import BOARD, RUN, SMALL, STATISTICS

# --- Help -----------------------------------------------------------------------------

CONTRACTED = {
    ("run",): "--dataset --data-root --model --embedding --k --self-loops --drop-edge "
    "--layers --hidden --dropout --lr --steps --splits --seed --device --precision "
    "--backbone --out --json --config",
    ("homophily",): "--dataset --data-root --embedding --k --self-loops --json",
    ("data", "list"): "--data-root --json",
    ("data", "info"): "NAME --data-root --json",
    ("data", "check"): "NAME --data-root --json",
    ("data", "get"): "NAME --data-root --out",
    ("bench", "knn"): "--nodes --dim --k --data --rounds --device --json",
}


@pytest.mark.parametrize("verb", CONTRACTED, ids=" ".join)
def test_help_names_every_option(ecg_gnn, verb):
    status, out, err = ecg_gnn(*verb, "--help")
    assert (status, err) == (0, "")
    for option in CONTRACTED[verb].split():
        assert option in out


def test_help_names_the_choices(ecg_gnn):
    _, out, _ = ecg_gnn("run", "--help")
    text = " ".join(out.replace("│", " ").split())
    for name in [
        "mlp+bgrl",
        "mlp-gnn",
        "identity",
        "oracle",
        "gat-sep",
        "tuned",
        "within_k",
        "bf16",
    ]:
        assert name in text


def test_version(ecg_gnn):
    assert ecg_gnn("--version")[:2] == (0, "ecg-gnn 0.2.0\n")


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_no_verb_shows_the_help(ecg_gnn, arguments):
    _, out, err = ecg_gnn(*arguments)
    assert "Usage" in out
    assert err == ""


# --- data -----------------------------------------------------------------------------


def test_data_list(ecg_gnn):
    status, out, _ = ecg_gnn("data", "list", "--json")
    rows = json.loads(out)
    assert status == 0
    names = {row["name"] for row in rows}
    assert {"roman-empire", "tolokers", "texas", "minesweeper-gen"} <= names
    status, out, _ = ecg_gnn("data", "list")
    assert status == 0
    assert all(name in out for name in names)
    assert "Data root:" in out


@pytest.mark.parametrize("verb", ["info", "check"])
def test_data_info_and_check(ecg_gnn, graph_file, verb):
    for name in (BOARD, graph_file("my graph [1].npz")):
        status, out, err = ecg_gnn("data", verb, name, "--json")
        found = json.loads(out)
        assert (status, err) == (0, "")
        assert {"name", "nodes", "edges", "classes", "splits", "sha256"} <= set(found)
        assert ("ok" in found) == (verb == "check")
        status, out, _ = ecg_gnn("data", verb, name)
        assert status == 0
        assert found["sha256"] in out


def test_data_get_writes_what_can_be_run(ecg_gnn, tmp_path):
    status, out, _ = ecg_gnn("data", "get", "csbm:nodes=50", "--out", "mine.npz")
    assert (status, out) == (0, "csbm:nodes=50: written to mine.npz\n")
    assert ecg_gnn("data", "check", "mine.npz")[0] == 0
    assert ecg_gnn("data", "get", BOARD)[:2] == (0, f"{BOARD}: ready (64 nodes)\n")
    run = ecg_gnn("run", "--dataset", "mine.npz", *SMALL, "--out", "a folder")
    assert run[0] == 0
    assert (tmp_path / "a folder/figure.png").stat().st_size > 0


def test_data_get_cannot_write(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("data", "get", BOARD, "--out", "file/x.npz")


def test_absent_file_says_what_to_put_where(refused, tmp_path):
    line = refused("data", "check", "minesweeper", "--data-root", tmp_path / "empty")
    assert "put minesweeper.npz (sha256 e664c8da" in line
    assert str(tmp_path / "empty") in line


# --- homophily ------------------------------------------------------------------------


def test_homophily_of_the_graph(ecg_gnn):
    status, out, err = ecg_gnn("homophily", "--dataset", BOARD, "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert set(found) == {"graph", "evolved"}
    assert set(found["graph"]) == STATISTICS
    assert found["evolved"] is None
    same = ecg_gnn("homophily", "--dataset", BOARD, "--embedding", "none", "--json")
    assert json.loads(same[1]) == found


@pytest.mark.parametrize(
    ("mode", "per_node"), [("exclude", 3), ("within-k", 3), ("within_k", 3), ("add", 4)]
)
def test_homophily_of_the_evolved_graph(ecg_gnn, mode, per_node):
    options = ["--embedding", "mlp", "--k", 3, "--self-loops", mode, "--embed-steps", 2]
    status, out, _ = ecg_gnn("homophily", "--dataset", BOARD, *options, "--json")
    found = json.loads(out)
    assert status == 0
    assert set(found["evolved"]) == STATISTICS
    assert found["evolved"]["num_edges"] == per_node * 64
    status, out, _ = ecg_gnn("homophily", "--dataset", BOARD, *options)
    assert status == 0
    assert "G_ECG (mlp)" in out
    assert f"{found['evolved']['edge_homophily']:.3f}" in out


def test_homophily_without_edges_is_undefined(ecg_gnn, graph_file):
    path = graph_file(edges=np.zeros((0, 2), dtype=int))
    found = json.loads(ecg_gnn("homophily", "--dataset", path, "--json")[1])
    assert found["graph"]["edge_homophily"] is None
    assert "undefined" in ecg_gnn("homophily", "--dataset", path)[1]


# --- run ------------------------------------------------------------------------------


def test_run_prints_json_only(ecg_gnn, tmp_path):
    embeddings = ["--embedding", "mlp", "--embedding", "bgrl"]
    status, out, err = ecg_gnn(*RUN, *embeddings, "--out", "out", "--json")
    found = json.loads(out)
    assert status == 0
    assert {"dataset", "metric", "results", "comparisons"} <= set(found)
    for row in found["results"]:
        keys = [
            "variant",
            "model",
            "embedding",
            "test_mean",
            "test_std",
            "val_mean",
            "per_split",
        ]
        assert set(keys) <= set(row)
    for row in found["comparisons"]:
        assert set(
            ["variant", "against", "mean_difference", "ci_low", "ci_high"]
        ) <= set(row)
    variants = [(row["variant"], row["embedding"]) for row in found["results"]]
    assert variants == [
        ("baseline", None),
        ("ecg", "mlp"),
        ("ecg", "bgrl"),
        ("identity", "identity"),
        ("embedding", "mlp"),
        ("embedding", "bgrl"),
    ]
    assert "2 splits are too few to tell" in found["verdict"]
    assert "[12/12] split 1 embedding (bgrl)" in err
    for name in ("run.json", "config.json", "results.json", "results.md", "figure.png"):
        assert (tmp_path / "out" / name).stat().st_size > 0


def test_run_prints_tables(ecg_gnn, tmp_path):
    status, out, _ = ecg_gnn(*RUN)
    assert status == 0
    for text in ("baseline", "ECG (mlp)", "identity", "± ", "[95% CI]", "G_ECG (mlp)"):
        assert text in out
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("minesweeper-gen-sage-")
    assert f"In runs/{folder.name}: config.json, figure.png" in out
    assert " · sage" in out  # as its neighbours do not agree
    tuned = ["--backbone", "tuned", "--model", "gcn", "--embedding", "none"]
    tuned += ["--splits", "0"]
    assert " · tuned gcn" in ecg_gnn(*RUN, *tuned)[1]


def test_run_and_fit_share_their_defaults(ecg_gnn):
    """Only steps and splits are given here: those of a fit are one split."""
    graph = ["--dataset", BOARD, "--json"]
    _, ran, _ = ecg_gnn("run", *graph, "--splits", "0", "--steps", "1", "--out", "ran")
    _, fitted, _ = ecg_gnn("fit", *graph, "--steps", "1", "--out", "fitted")
    ran, fitted = json.loads(ran)["config"], json.loads(fitted)["config"]
    assert ran["preset"] == "auto"
    assert ran == fitted
    quick = ["--preset", "quick", "--model", "gcn", "--splits", "0", "--steps", "1"]
    _, told, _ = ecg_gnn("run", *graph, *quick, "--out", "quick")
    model = json.loads(told)["config"]["model"]
    assert (model["name"], model["layers"]) == ("gcn", 3)


def test_options_win_over_the_config_file(ecg_gnn, tmp_path):
    (tmp_path / "run.yaml").write_text(
        f"dataset: '{BOARD}'\nsplits: [0]\nembed: {{names: [none]}}\n"
        "model: {layers: 1, hidden: 8, dropout: 0}\ntrain: {steps: 2, lr: 3e-5}\n"
        "evolve: {k: 3}\n"
    )
    options = ["--config", "run.yaml", "--layers", 2, "--splits", "1", "--json"]
    status, out, err = ecg_gnn("run", *options)
    assert status == 0, err
    used = json.loads(out)["config"]
    assert (used["model"]["layers"], used["model"]["hidden"]) == (2, 8)
    assert (used["splits"], used["train"]["lr"]) == ([1], 3e-5)


def test_config_of_a_run_goes_on_with_that_run(ecg_gnn):
    first = json.loads(ecg_gnn(*RUN, "--out", "out", "--json")[1])
    status, out, err = ecg_gnn(
        "run", "--config", "out/config.json", "--out", "out", "--json"
    )
    assert status == 0, err
    assert json.loads(out) == first


def test_several_graphs_models_and_backbones(ecg_gnn):
    for options in (
        ["--embedding", "mlp,bgrl", "--model", "gat-sep"],
        ["--embedding", "mlp-gnn", "--backbone", "tuned", "--norm", "layer"],
        ["--embedding", "features", "--model", "resnet"],
        ["--embedding", "random", "--random-splits", "--symmetric"],
        ["--precision", "bf16", "--similarity", "dot", "--drop-edge", "1"],
    ):
        status, out, err = ecg_gnn(*RUN, *options, "--json")
        assert status == 0, err
        assert json.loads(out)["results"]


@pytest.mark.parametrize("model", ["cpgnn", "resnet", "h2gcn"])
def test_models_without_evolved_graphs_say_so_where_one_is_asked_for(ecg_gnn, model):
    asked = [*RUN, "--model", model, "--splits", "0", "--embed-steps", "1"]
    said = f"warning: {model} has no place for an evolved graph: it runs without mlp"
    assert said not in ecg_gnn(*asked)[2]
    status, _, err = ecg_gnn(*asked, "--embedding", "mlp")
    assert (status, said in err) == (0, model != "h2gcn")


@pytest.mark.parametrize("name", ["z.npy", "z.npz", "z $1^ [b] é.safetensors"])
def test_precomputed_embeddings(ecg_gnn, tmp_path, name):
    rows = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
    if name.endswith(".npy"):
        np.save(tmp_path / name, rows)
    elif name.endswith(".npz"):
        np.savez(tmp_path / name, rows)
    else:
        from safetensors.numpy import save_file

        save_file({"z": rows}, tmp_path / name)
    status, out, err = ecg_gnn(*RUN, "--embedding", f"precomputed:{name}")
    assert status == 0, err
    assert f"ECG (precomputed:{name})" in out


def test_figure_missing_is_said(ecg_gnn, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, _ = ecg_gnn(*RUN, "--out", "out")
    assert status == 0
    assert "ecg-gnn[plot]" in (tmp_path / "out/figure-missing.txt").read_text()


@pytest.mark.parametrize(
    "options",
    [
        "--layers 2 --self-loops only",
        "--splits 1,0 --device cpu --precision fp32",
        "--seed 4611686018427387904 --dropout 0.99 --lr 0",
        "--embed-layers 2 --embed-steps 1 --embed-lr 0.1",
    ],
)
def test_unusual_but_right(ecg_gnn, options):
    status, _, err = ecg_gnn(*RUN, *options.split(), "--json")
    assert status == 0, err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,3,5", (0, 3, 5)),
        ("0-2,7", (0, 1, 2, 7)),
        (" 0 - 1 , 4", (0, 1, 4)),
    ],
)
def test_forms_of_splits(text, expected):
    assert read_splits(text) == expected


def test_cache_that_cannot_be_written_is_a_warning(ecg_gnn, monkeypatch):
    monkeypatch.setenv("ECG_CACHE", "/proc/nowhere")
    monkeypatch.setattr("warnings.filters", [])
    status, _, err = ecg_gnn(*RUN)
    assert status == 0
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert lines
    assert all("cannot be written" in line for line in lines)


# --- bench ----------------------------------------------------------------------------


BENCH_KNN = ["bench", "knn", "--nodes", 200, "--dim", 8, "--k", 3, "--rounds", 1]
BENCH_KNN += ["--device", "cpu"]


def test_bench_knn_prints_json_only(ecg_gnn):
    status, out, err = ecg_gnn(*BENCH_KNN, "--json")
    rows = json.loads(out)
    assert status == 0
    assert [row["data"] for row in rows] == ["random", "clusters", "tight-clusters"]
    assert {"ours_s", "floor_s", "floor_ratio", "sklearn_s", "faiss_s", "torch_s"} < (
        rows[0].keys()
    )
    assert "random: round 1 of 1" in err


def test_bench_knn_prints_a_table(ecg_gnn):
    status, out, _ = ecg_gnn(*BENCH_KNN, "--data", "clusters")
    assert status == 0
    for text in ("clusters", "200 x 8, 3", "sklearn/ours", "x floor"):
        assert text in out
    assert "random" not in out


# --- Real data ------------------------------------------------------------------------


@pytest.mark.dataset
@pytest.mark.parametrize(
    ("dataset", "edge", "adjusted", "informativeness"),
    [
        ("minesweeper", 0.683, 0.009, 0.000),
        ("tolokers", 0.595, 0.093, 0.007),
        ("roman-empire-glove", 0.047, -0.047, 0.110),
    ],
)
def test_homophily_of_the_benchmark(
    ecg_gnn, data_root, dataset, edge, adjusted, informativeness
):
    _, out, _ = ecg_gnn(
        "homophily", "--dataset", dataset, "--data-root", data_root, "--json"
    )
    found = json.loads(out)["graph"]
    keys = ("edge_homophily", "adjusted_homophily", "label_informativeness")
    rounded = [round(found[key], 3) for key in keys]
    assert rounded == [edge, adjusted, informativeness]


@pytest.mark.dataset
@pytest.mark.slow
def test_homophily_of_the_papers_mlp_graph(ecg_gnn, data_root):
    options = ["--embedding", "mlp", "--k", 3, "--self-loops", "within_k"]
    _, out, _ = ecg_gnn(
        "homophily",
        *("--dataset", "minesweeper", "--data-root", data_root, *options, "--json"),
    )
    found = json.loads(out)["evolved"]
    assert found["num_edges"] == 30_000
    assert found["edge_homophily"] == pytest.approx(0.79, abs=0.01)
    assert found["adjusted_homophily"] == pytest.approx(0.34, abs=0.01)
