"""What bad input gets: one line, exit status 2, nothing left behind."""

import sys

import numpy as np
import pytest

from ecg_gnn.cli import main
from small_runs import BOARD, RUN, ring_arrays


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--dataset minesweper", "did you mean 'minesweeper'?"),
        ("--dataset absent.npz", "absent.npz: cannot be read"),
        ("--dataset csbm:nodes=many", "'nodes' of 'csbm' must be of type int"),
        ("--dataset csbm:size=9", "with the keys ['nodes', 'classes'"),
        ("--dataset texas:seed=1", "takes no parameters"),
        ("--model gin", "'model' must be one of ['resnet', 'gcn', 'sage'"),
        (
            "--model gt --backbone tuned",
            "'auto'] for the backbone 'tuned' (got 'gt')",
        ),
        ("--backbone big", "'backbone' must be one of ['benchmark', 'tuned']"),
        ("--embedding mpl", "'embedding' must be one of ['mlp', 'bgrl'"),
        ("--embedding mlp,none", "(got 'none')"),
        ("--embedding precomputed:absent.npy", "'absent.npy' does not exist"),
        ("--embedding own:mine", "'embedding' must be one of"),
        ("--precision fp8", "must be one of ['auto', 'fp32', 'tf32', 'bf16']"),
        ("--precision tf32 --device cpu", "must be one of ['fp32', 'bf16'] on 'cpu'"),
        ("--device tpu", "'device' must be one of ['auto', 'cpu', 'cuda'"),
        ("--device cuda:99", "CUDA devices are visible (got 'cuda:99')"),
        ("--self-loops maybe", "must be one of ['exclude', 'within_k', 'add', 'only']"),
        ("--similarity l1", "must be one of ['cosine', 'dot', 'euclidean']"),
        ("--norm group", "'norm' must be one of"),
        ("--model gpr-gnn --set alpha", "'set' must be like alpha=0.2"),
        ("--model gpr-gnn --set =1", "'set' must be like alpha=0.2"),
        ("--model gpr-gnn --set alpha=x", "'model.options.alpha' must be of type"),
        ("--model gpr-gnn --set alpha=[1", "'model.options.alpha' must be of type"),
        ("--model gpr-gnn --set eps=1", "'option of gpr-gnn' must be one of"),
        ("--model gcn --set eps=1", "'option of gcn' must be one of"),
        ("--model linkx --embedding bgrl", "'embedding' must be one of ['none']"),
        ("--preset best", "'preset' must be one of ['quick', 'paper', 'auto']"),
        ("--preset paper", "use preset 'quick'"),
        ("--k 64", "'k' must be in [1, 63], below the number of nodes (got 64)"),
        ("--k 0", "'k' must be in [1, inf) (got 0)"),
        ("--k ten", "unable to parse string as an integer (got 'ten')"),
        ("--lr=fast", "unable to parse string as a number (got 'fast')"),
        ("--k 99999999999999999999", "'k' must be in [1, 63]"),
        ("--splits 0-99", "must be in [0, 9] (got 10)"),
        ("--splits 0-99999999999999", "must be in [0, 9] (got 10)"),
        ("--splits 3-1", "'splits' must be like 0-9 or 0,3,5 (got '3-1')"),
        ("--splits 1,1", "at least one split, each once (got '1,1')"),
        ("--splits one", "must be like 0-9 or 0,3,5 (got 'one')"),
        ("--splits=-1", "must be like 0-9 or 0,3,5 (got '-1')"),
        ("--steps=-1", "'steps' must be in [1, 10000000] (got -1)"),
        ("--steps many", "Invalid value for '--steps'"),
        ("--hidden 0", "'hidden' must be in [1, 1048576]"),
        ("--hidden 99999999999999999999", "'hidden' must be in [1, 1048576]"),
        ("--layers 1000000", "'layers' must be in [1, 10000]"),
        ("--hidden 12 --model gat-sep", "'hidden' must be a multiple of 8"),
        ("--lr nan", "'lr' must be in [0, inf) (got nan)"),
        ("--lr inf", "'lr' must be in [0, inf) (got inf)"),
        ("--dropout 1", "'dropout' must be in [0, 0.99] (got 1.0)"),
        ("--drop-edge 1.1", "'drop_edge' must be in [0, 1] (got 1.1)"),
        ("--seed=-1", "'seed' must be in [0,"),
        ("--jobs 0", "'jobs' must be in [1, inf) (got 0)"),
        ("--config absent.yaml", "absent.yaml: cannot be read (No such file"),
        ("--config .", ".: cannot be read (Is a directory)"),
        ("--out /proc/nowhere", "'out' '/proc/nowhere' cannot be written"),
        ("--stepps 3", "No such option: --stepps"),
        ("surplus", "unexpected extra argument"),
    ],
)
def test_bad_options(refused, options, message):
    out = [] if "--out" in options else ["--out", "out"]
    assert message in refused(*RUN, *out, *options.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {layers: [", "is not YAML or JSON"),
        ("\x00", "is not YAML or JSON"),
        ("!!python/object/apply:os.system ['true']", "is not YAML or JSON"),
        ("", "must hold a mapping of settings (got None)"),
        ("- 1", "must hold a mapping of settings (got [1])"),
        ("modle: {}", "'a setting of config' must be one of ['dataset'"),
        ("model: {layer: 2}", "'a setting of model' must be one of ['name'"),
        ("model: gcn", "'model' must be a mapping of settings (got 'gcn')"),
        ("train: {steps: few}", "'train.steps' must be of type int (got 'few')"),
        ("train: {steps: -1}", "'steps' must be in [1, 10000000]"),
        ("splits: [0, 0]", "each once (got [0, 0])"),
    ],
)
def test_bad_config_files(refused, tmp_path, text, message):
    (tmp_path / "run.yaml").write_text(text)
    options = ["--dataset", BOARD, "--layers", 1, "--k", 3, "--out", "out"]
    assert message in refused("run", "--config", "run.yaml", *options)


NODES = np.arange(12)
ONE_CLASS = ((NODES % 2 == 0) & (NODES // 2 % 3 == 0))[None]
BAD_GRAPHS = {
    "NaN": ({"node_features": np.full((12, 3), np.nan)}, "must be finite in float32"),
    "infinity": ({"node_features": np.full((12, 3), np.inf)}, "got 36 NaN or infinite"),
    "edge too high": ({"edges": np.array([[0, 12]])}, "must name nodes in [0, 11]"),
    "edge negative": ({"edges": np.array([[-1, 0]])}, "must name nodes in [0, 11]"),
    "labels": ({"node_labels": NODES[:-1] % 2}, "one label per node, shape [12]"),
    "train class": ({"train_masks": ONE_CLASS}, "got no node of class 1 in split 0"),
    "empty": ({"val_masks": np.zeros((1, 12), bool)}, "at least one node in every"),
    "overlap": ({"val_masks": (NODES // 2 % 3 < 2)[None]}, "must not overlap"),
    "pickled": ({"node_labels": np.array([{}] * 12)}, "never loaded"),
}


@pytest.mark.parametrize("fault", BAD_GRAPHS)
@pytest.mark.parametrize("verb", ["run --out out --dataset", "data check"])
def test_bad_graphs(refused, graph_file, fault, verb):
    changed, message = BAD_GRAPHS[fault]
    line = refused(*verb.split(), graph_file(**changed))
    assert message in line
    assert "graph.npz" in line


@pytest.mark.parametrize("verb", ["run --out out --dataset", "homophily --dataset"])
def test_truncated_graph(refused, graph_file, verb):
    path = graph_file()
    path.write_bytes(path.read_bytes()[:500])
    assert "must be a whole .npz file" in refused(*verb.split(), path)


@pytest.mark.parametrize("name", ["nodes.csv", "./nodes.csv", "folder", "folder/"])
def test_tables_are_to_be_imported_first(refused, tmp_path, name):
    (tmp_path / "nodes.csv").write_text("id,kind\n")
    (tmp_path / "folder").mkdir()
    said = refused("fit", "--out", "out", "--dataset", name)
    assert f"{name}: 'dataset' must be an .npz file or a folder that" in said
    assert "`ecg-gnn data import` wrote" in said


def test_too_few_nodes_to_split(refused, tmp_path):
    content = ring_arrays(4)
    kept = ("node_features", "node_labels", "edges")
    np.savez(tmp_path / "tiny.npz", **{key: content[key] for key in kept})
    assert "splits drawn from seed 0" in refused("data", "check", "tiny.npz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("z.npy", np.full((64, 2), np.nan), "must return finite numbers"),
        ("z.npy", np.zeros((63, 2)), "[64, D]"),
        ("z.npy", np.zeros(64), "[64, D]"),
        ("z.npy", np.zeros((64, 0)), "[64, D]"),
        ("z.npy", np.zeros((64, 2), complex), "must be real numbers"),
        ("z.npy", np.full((64, 2), "a"), "one row of numbers per node"),
        ("z.npy", np.full((64, 2), None), "never loaded"),
        ("z.npy", b"hello", "must be a whole .npy file"),
        ("z.npy", b"", "must be a whole .npy file"),
        ("z.npz", b"PK\x03\x04", "must be a whole .npz file"),
        ("z.safetensors", b"hello", "must be a whole .safetensors file"),
        ("z.txt", b"hello", "must end in one of"),
    ],
)
def test_bad_precomputed_embeddings(refused, tmp_path, name, content, message):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.save(tmp_path / name, content)
    for verb in (["run", "--out", "out"], ["homophily"]):
        options = ["--dataset", BOARD, "--k", 3, "--embedding", f"precomputed:{name}"]
        assert message in refused(*verb, *options)


def test_homophily_takes_one_embedding(refused):
    options = ["--dataset", BOARD, "--k", 3, "--embedding", "mlp,bgrl"]
    assert "must be a single one here" in refused("homophily", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--k 0", "'k' must be in [1, 22661] (got 0)"),
        ("--nodes 5 --k 5", "'k' must be in [1, 4] (got 5)"),
        ("--nodes 1", "'nodes' must be in [2, inf) (got 1)"),
        ("--dim 0", "'dim' must be in [1, inf) (got 0)"),
        ("--rounds 0", "'rounds' must be in [1, inf) (got 0)"),
        ("--data ring", "'data' must be one of ['random', 'clusters', 'tight-"),
        ("--device tpu", "'device' must be one of ['auto', 'cpu', 'cuda'"),
        ("--nodes many", "Invalid value for '--nodes'"),
    ],
)
def test_bad_sizes_of_the_knn_benchmark(refused, options, message):
    assert message in refused("bench", "knn", *options.split())


def test_folders_that_are_not_ours(refused, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/text").write_text("mine")
    assert "is not empty and holds no run" in refused(*RUN, "--out", "notes")
    assert "must be a folder" in refused(*RUN, "--out", "notes/text")
    assert "cannot be written" in refused(*RUN, "--out", "notes/text/below")
    assert (tmp_path / "notes/text").read_text() == "mine"


@pytest.mark.parametrize(
    "error", [MemoryError("too much"), RuntimeError("[x] can't allocate memory: 9 B")]
)
def test_memory_that_runs_out_is_one_line(ecg_gnn, monkeypatch, error):
    def classify(*arguments, **options):
        raise error

    monkeypatch.setattr("ecg_gnn.study.units.classify", classify)
    status, _, err = ecg_gnn(*RUN, "--out", "out")
    assert (status, err) == (1, f"error: not enough memory: {error}\n")


def test_a_full_disk_is_one_line(ecg_gnn, monkeypatch):
    def store(*arguments):
        raise OSError(28, "No space left on device", "records/x.json")

    monkeypatch.setattr("ecg_gnn.study.RunFolder.store", store)
    status, _, err = ecg_gnn(*RUN, "--out", "out")
    assert status == 1
    assert err == "error: [Errno 28] No space left on device: 'records/x.json'\n"


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch):
    def load(*arguments, **options):
        raise RuntimeError("ours")

    monkeypatch.setattr("ecg_gnn.cli.run_verb.load_dataset", load)
    monkeypatch.setattr(sys, "argv", ["ecg-gnn", "homophily"])
    with pytest.raises(RuntimeError, match="ours"):
        main()


@pytest.fixture
def huge_features(graph_file):
    features = 1e30 * ring_arrays(60)["node_features"]
    graph_file(**ring_arrays(60, node_features=features))
    return ["--dataset", "graph.npz", "--out", "out", "--json"]


@pytest.mark.parametrize("verb", ["run --splits 0", "fit --embedding mlp"])
def test_features_without_measure_are_named(ecg_gnn, huge_features, verb):
    """Not the learning rate, which could not help."""
    small = "--steps 2 --hidden 4 --layers 1 --k 3 --embed-hidden 4"
    status, _, err = ecg_gnn(*verb.split(), *huge_features, *small.split())
    said = "the features must be at most 1e+09 for training to stay finite (got 2."
    assert (status, err.count("\n")) == (2, 1)
    assert said in err


def test_a_search_goes_on_without_what_overflows(ecg_gnn, huge_features):
    status, out, err = ecg_gnn("fit", *huge_features, "--budget", "2s")
    assert status == 0, err
    assert "NaN" not in out
