"""A stranger's path: two CSV files to predictions, in five commands."""

import csv
import dataclasses
import json

import pytest
from pyarrow import parquet
from safetensors.torch import load_file, save_file

from csv_graphs import NEW, write_csv, write_stranger
from ecg_gnn.inference import explain_node

FIT = ["fit", "--dataset", "graph", "--out", "model", "--device", "cpu"]
QUICK = ["--steps", "3", "--hidden", "8", "--layers", "1"]
IMPORT = ["data", "import", "--nodes", "nodes.csv", "--edges", "edges.csv"]
IMPORT += ["--label", "kind", "--out", "graph"]
PREDICT = ["predict", "model", "--out", "out.csv"]


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


HELP = {
    ("data", "import"): "--nodes --edges --label --id --source --target --features "
    "--splits --directed --graph --max-cells --out --json",
    ("fit",): "--dataset --out --embedding --k --model --balance --split --json",
    ("predict",): "MODEL --nodes --edges --all --out --json",
    ("explain",): "MODEL --node --out --json",
}


@pytest.mark.parametrize("verb", HELP, ids=" ".join)
def test_help_names_every_option(ecg_gnn, verb):
    status, out, err = ecg_gnn(*verb, "--help")
    assert (status, err) == (0, "")
    for option in HELP[verb].split():
        assert option in out


def test_from_two_files_to_predictions(ecg_gnn, tmp_path):
    truth = write_stranger(tmp_path, num_nodes=300, unlabelled=40)
    status, out, err = ecg_gnn(*IMPORT)
    assert status == 0, err
    for text in ("unlabelled nodes  40", "kind-a", "self loops dropped  1"):
        assert text in out
    assert ecg_gnn("data", "info", "graph")[0] == 0
    status, out, _ = ecg_gnn("homophily", "--dataset", "graph", "--json")
    assert json.loads(out)["graph"]["edge_homophily"] < 0.3
    status, out, err = ecg_gnn(*FIT, "--steps", "60", "--hidden", "32")
    assert status == 0, err
    for text in ("ECG (mlp)", "identity control", "MODEL_CARD.md"):
        assert text in out
    status, out, _ = ecg_gnn(*PREDICT)
    assert (status, out) == (0, "out.csv: 40 nodes, 0 of them new\n")
    new = ["--nodes", "new_nodes.csv", "--edges", "new_edges.csv", "--out", "new.tsv"]
    status, out, _ = ecg_gnn("predict", "model", *new)
    assert (status, out) == (0, f"new.tsv: {NEW} nodes, {NEW} of them new\n")
    held = read_rows(tmp_path / "out.csv")
    assert [row["id"] for row in held][:2] == ["n000", "n001"]
    right = [row["predicted"] == truth[row["id"]] for row in held]
    assert sum(right) / len(right) > 0.5  # a third by chance
    for row in held:
        shares = [float(row[f"p_kind-{letter}"]) for letter in "abc"]
        assert sum(shares) == pytest.approx(1, abs=5e-6)  # six digits each
        assert max(shares) == float(row["probability"])


def test_explain(ecg_gnn, refused, model, tmp_path):
    status, out, err = ecg_gnn("explain", "model", "--node", "n030", "--out", "n.png")
    assert status == 0, err
    for text in ("input", "evolved", "similarity", "Picture: n.png"):
        assert text in out
    assert (tmp_path / "n.png").stat().st_size > 0
    found = ecg_gnn("explain", "model", "--node", "n030", "--most", 1, "--json")[1]
    assert len(json.loads(found)["neighbours"]) == 2
    explain = ["explain", "model", "--node"]
    assert "'node' must be in the model's graph" in refused(*explain, "x")
    assert "must end in one of ['.png'" in refused(*explain, "n030", "--out", "n.gif")
    assert "'most' must be in" in refused(*explain, "n030", "--most", 0)


def test_a_node_without_neighbours_is_explained(ecg_gnn, model, monkeypatch):
    def alone(*given, **options):
        return dataclasses.replace(explain_node(*given, **options), neighbours=())

    explain = ["explain", "model", "--node", "n030"]
    assert "n0" in ecg_gnn(*explain)[1].replace("n030", "")
    monkeypatch.setattr("ecg_gnn.inference.explain_node", alone)
    status, out, _ = ecg_gnn(*explain)
    assert status == 0
    assert "n0" not in out.replace("n030", "")


def test_run_takes_a_graph_folder(ecg_gnn, tmp_path):
    write_stranger(tmp_path)
    assert ecg_gnn(*IMPORT)[0] == 0
    options = ["--steps", 2, "--hidden", 8, "--layers", 1, "--splits", 0, "--k", 3]
    status, out, err = ecg_gnn("run", "--dataset", "graph", *options, "--json")
    assert status == 0, err
    assert json.loads(out)["dataset"] == "graph"


def test_json_and_parquet(ecg_gnn, tmp_path):
    write_stranger(tmp_path)
    report = json.loads(ecg_gnn(*IMPORT, "--json")[1])
    assert report["nodes"] == 138
    found = json.loads(ecg_gnn(*FIT, *QUICK, "--json")[1])
    assert set(found["metrics"]) == {"mlp", "none", "identity"}
    out = ecg_gnn("predict", "model", "--all", "--out", "p.parquet", "--json")[1]
    assert json.loads(out)["nodes"] == 138
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names[:3] == ["id", "predicted", "probability"]


# --- Faults ---------------------------------------------------------------------------


@pytest.fixture
def model(ecg_gnn, tmp_path):
    write_stranger(tmp_path)
    assert ecg_gnn(*IMPORT)[0] == 0
    assert ecg_gnn(*FIT, *QUICK)[0] == 0
    return tmp_path / "model"


def change(path, **changed):
    """Of a manifest from before there were checksums."""
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    path.write_text(json.dumps(manifest | changed))


def edit(path):
    path.write_text(path.read_text().replace('"temperature": ', '"temperature": 9'))


def classifier(path, **changed):
    found = json.loads(path.read_text())["classifier"]
    change(path, classifier=found | changed)


def lose_weights(folder):
    weights = load_file(folder / "weights.safetensors")
    weights.pop("network.output.weight")
    save_file(weights, folder / "weights.safetensors")
    classifier(folder / "model.json", sha256=None)


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


DAMAGE = {
    "version": (lambda m: change(m / "model.json", version=2), "must be of version 1"),
    "older": (lambda m: change(m / "model.json", version=0), "another version of it"),
    "format": (lambda m: change(m / "model.json", format="x"), "must say that it is"),
    "no manifest": (lambda m: (m / "model.json").unlink(), "it has no model.json"),
    "warmer": (
        lambda m: edit(m / "model.json"),
        "model.json: was changed after the model was written",
    ),
    "classes": (lambda m: change(m / "model.json", classes=["a"]), "each of 3 classes"),
    "columns": (lambda m: change(m / "model.json", columns={"id": 3}), "must name ["),
    "settings": (
        lambda m: classifier(m / "model.json", config={"seeed": 1}),
        "'a setting of config' must be one of",
    ),
    "embedding": (
        lambda m: classifier(m / "model.json", embedding="../x"),
        "'embedding' must be one of",
    ),
    "temperature": (
        lambda m: classifier(m / "model.json", temperature=0.0),
        "'temperature' must be in",
    ),
    "weights": (
        lambda m: classifier(m / "model.json", class_weights=[1.0]),
        "'class_weights' must be 3 numbers",
    ),
    "pipeline": (
        lambda m: change(m / "model.json", features={"blocks": [{"kind": "text"}]}),
        "the feature pipeline is damaged",
    ),
    "half an index": (lambda m: cut(m / "index.npz"), "must be a whole .npz file"),
    "half the weights": (lambda m: cut(m / "weights.safetensors"), "unchanged since"),
    "no weights": (
        lambda m: (m / "weights.safetensors").unlink(),
        "weights.safetensors: cannot be read",
    ),
    "fewer weights": (lose_weights, "weights do not fit the settings"),
}


def test_damaged_models(refused, model, tmp_path):
    whole = {path: path.read_bytes() for path in model.iterdir()}
    for fault, (damage, message) in DAMAGE.items():
        damage(model)
        assert message in refused(*PREDICT), fault
        for path, content in whole.items():
            path.write_bytes(content)


def test_bad_requests(refused, ecg_gnn, model, tmp_path):
    header = ["id", *(f"f{i}" for i in range(6)), "city", "words"]
    row = ["x1", *"123456", "Oslo", "red old"]
    write_csv(tmp_path / "good.csv", header, [row])
    write_csv(tmp_path / "short.csv", header[:-2], [row[:-2]])
    write_csv(tmp_path / "word.csv", header, [["x1", "one", *row[2:]]])
    write_csv(tmp_path / "twice.csv", header, [row, row])
    write_csv(tmp_path / "far.csv", ["source", "target"], [["x1", "x9"]])
    write_csv(tmp_path / "ends.csv", ["from", "to"], [["x1", "n001"]])
    for options, message in {
        "--nodes short.csv": "(missing: ['city', 'words']; the file has ['id', 'f0'",
        "--nodes word.csv": "'f0' must be numbers (got 'one' in row 1)",
        "--nodes twice.csv": "must name every node once (got 'x1'",
        "--nodes absent.csv": "cannot be read",
        "--nodes edges.csv": "must have the column 'id' of the nodes",
        "--nodes good.csv --edges far.csv": "(got 'x9' in row 1",
        "--nodes good.csv --edges ends.csv": "must have the column 'source'",
        "--edges edges.csv": "'edges' must come with 'nodes'",
        "--nodes good.csv --all": "'all' cannot be combined",
        "--nodes good.csv --out good.csv": "'out' must be another file than 'good.csv'",
        "--out p.xls": "must be one of ['.csv', '.tsv', '.parquet']",
        "--out /proc/nowhere/p.csv": "cannot be written",
    }.items():
        assert message in refused(*PREDICT, *options.split()), options
    assert "does not exist" in refused("predict", "none", "--out", "p.csv")
    assert ecg_gnn(*PREDICT, "--nodes", "good.csv")[0] == 0


def test_bad_fits(refused, ecg_gnn, tmp_path):
    write_stranger(tmp_path)
    assert ecg_gnn(*IMPORT)[0] == 0
    for options, message in {
        "--embedding mlp-gnn": "'embedding' must be one of ['mlp', 'bgrl', 'mlp+bgrl'",
        "--model linkx": "'model' must be one of",
        "--split 10": "must be in [0, 9] (got 10)",
        "--k 500": "'k' must be in",
        "--k 0": "'k' must be in",
        "--steps=-2": "'steps' must be in",
        "--steps 0": "'steps' must be in",
        "--layers 0": "'layers' must be in",
        "--hidden 0": "'hidden' must be in",
        "--device tpu": "'device' must be one of",
        "--lr 1e30": "'lr' must be small enough",
        "--dataset nothing": "'dataset' must be a path",
        "--out nodes.csv": "'out' must not exist yet",
        "--out /proc/nowhere/m": "cannot be written",
    }.items():
        assert message in refused(*FIT, *QUICK, *options.split()), options


def test_homophily_says_what_is_counted(ecg_gnn, tmp_path):
    write_stranger(tmp_path)  # with nodes that have no class
    assert ecg_gnn(*IMPORT)[0] == 0
    said = "Counted over edges whose two ends have a class."
    assert said in ecg_gnn("homophily", "--dataset", "graph")[1]
    of_board = ecg_gnn("homophily", "--dataset", "minesweeper-gen:rows=8,cols=8")[1]
    assert said not in of_board
    assert "h_adj: 1 where all neighbours share a class" in of_board
