"""The committed results: what the records say, and how they are made anew."""

import importlib
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ecg_gnn.study.store import Store, write_records
from ecg_gnn.system.checks import InputError
from small_studies import HandmadeStore, dataset_info

ROOT = Path(__file__).parents[2]
SCRIPTS = [path.stem for path in (ROOT / "results").glob("*.py")]
GLOVE = dataset_info("roman-empire-glove", note="other features")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the results and of the pages that quote them, with its own scripts."""
    shutil.copytree(ROOT / "results", tmp_path / "results")
    shutil.copytree(ROOT / "docs" / "reproduction", tmp_path / "docs" / "reproduction")
    for page in ("docs/reproduction.md", "docs/findings.md"):
        shutil.copy(ROOT / page, tmp_path / page)
    monkeypatch.syspath_prepend(tmp_path / "results")
    for name in SCRIPTS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield SimpleNamespace(
        root=tmp_path, **{name: importlib.import_module(name) for name in SCRIPTS}
    )
    for name in SCRIPTS:
        del sys.modules[name]


def stale(project):
    with Store.open(project.make.RECORDS) as store:
        found = project.make.stale(store)
    return [str(path.relative_to(project.root)) for path in found]


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def keep_only(project, fill):
    """Let the records be those of a store filled by hand."""
    made = HandmadeStore(project.root / "by-hand.sqlite")
    fill(made)
    write_records(made.writer, project.make.RECORDS)
    made.writer.close()


def block(project, name):
    with Store.open(project.make.RECORDS) as store:
        return project.make.BLOCKS[name](store)


# --- Committed files ------------------------------------------------------------------


def test_committed_results_are_what_the_records_say(project):
    assert stale(project) == [], "run: make results"
    with Store.open(project.make.RECORDS) as store:
        assert project.make.unexplained(store) == []


def test_every_kind_of_staleness_is_found(project):
    figures, tables = project.root / "results/figures", project.root / "results/tables"
    edit(tables / "results.md", "± 0.", "± 1.")
    edit(project.root / "docs/reproduction/paper.md", "| reached |", "| missed |")
    edit(figures / "effects.svg", "<dc:source>records", "<dc:source>other records")
    (figures / "curves.svg").unlink()
    (tables / "extra.md").write_text("nobody makes this")
    wanted = [
        "docs/reproduction/paper.md",
        "results/figures/curves.svg",
        "results/figures/effects.svg",
        "results/tables/extra.md",
        "results/tables/results.md",
    ]
    assert stale(project) == wanted


def test_a_projection_belongs_to_a_record(project):
    with Store.open(project.make.RECORDS) as store:
        unit = store.records()[0].id
    for name, source in {"here": f"unit {unit}", "gone": "unit 0", "none": ""}.items():
        info = PngInfo()
        info.add_text("Source", source)
        path = project.root / "results" / "figures" / f"tsne-{name}.png"
        Image.new("RGB", (1, 1)).save(path, pnginfo=info)
    found = [Path(path).stem for path in stale(project)]
    assert found == ["tsne-gone", "tsne-none"]


def test_other_records_make_everything_stale_until_it_is_made_again(project):
    keep_only(project, on_the_substitute)
    found = stale(project)
    pages = {"docs/findings.md", "docs/reproduction.md", "results/report.html"}
    assert pages <= {*found}
    assert {"results/tables/results.csv", "results/figures/effects.svg"} <= {*found}
    with Store.open(project.make.RECORDS) as store:
        project.make.make(store)
    # A projection is not made again, and its record is gone.
    assert all(Path(path).stem.startswith("tsne-") for path in stale(project))
    assert "76.00 ± 8.49" in (project.root / "docs" / "findings.md").read_text("utf-8")


def test_a_store_is_added_and_its_units_win(project):
    with Store.open(project.make.RECORDS) as store:
        count, old = len(store.records()), store.records()[0]
    made = HandmadeStore(project.root / "new.sqlite")
    made.add([0.5, 0.25], dataset=GLOVE)
    made.writer.close()
    project.make.add([project.root / "new.sqlite"])
    made = HandmadeStore(project.root / "newer.sqlite")
    made.add([0.75], dataset=GLOVE)
    made.writer.close()
    project.make.add([project.root / "newer.sqlite"])
    with Store.open(project.make.RECORDS) as store:
        assert len(store.records()) == count + 2
        assert old in store.records()
        tests = [r.result.test for r in store.records()]
    assert {0.25, 0.75} <= {*tests}
    assert 0.5 not in tests


def test_check_from_the_command_line(project, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make.py", "--check"])
    project.make.main()
    (project.root / "results" / "report.html").unlink()
    with pytest.raises(
        SystemExit, match=r"say: results/report.html \(run: make results"
    ):
        project.make.main()
    project.make.RECORDS.write_text("{}")
    with pytest.raises(SystemExit, match=r"error: 'store' .* cannot be read"):
        project.make.main()


# --- What is said ---------------------------------------------------------------------


def low_ecg(made):
    """Tolokers: the plain GCN as in the paper, ECG far below it in two settings."""
    tolokers = dataset_info("tolokers")
    made.add([0.8364] * 3, dataset=tolokers)
    for k, score in ((3, 0.81), (10, 0.80)):
        settings = {"embedding": "mlp", "dataset": tolokers, "evolve.k": k}
        made.add([score, score, score + 0.01], **settings)


def test_a_missed_bar_must_be_explained(project):
    keep_only(project, low_ecg)
    with Store.open(project.make.RECORDS) as store:
        assert project.make.unexplained(store) == ["tolokers, gcn, ECG (mlp)"]
        page = project.make.BESIDE_PAPER
        text = page.read_text("utf-8")
        page.write_text(f"{text}\n**tolokers, gcn, ECG (mlp).** Because.\n", "utf-8")
        assert project.make.unexplained(store) == []
    said = block(project, "paper")
    assert "1 of 1 plain models are within 1.0 point" in said
    assert "0 of 1 ECG models are not more than 1.0 point below" in said
    assert "| −3.48 | **missed** |" in said
    tried = block(project, "tried")
    assert "| evolve.k 3 | 81.33 | 81.33 | −3.48 |" in tried
    assert "| evolve.k 10 |" in tried


@pytest.mark.parametrize(
    ("variant", "difference", "reached"),
    [
        ("baseline", 1.0, True),
        ("baseline", -1.01, False),
        ("baseline", 1.01, False),
        ("ecg", 5.0, True),
        ("ecg", -1.0, True),
        ("ecg", -1.01, False),
    ],
)
def test_bars(project, variant, difference, reached):
    row = {"variant": variant, "published_difference": difference}
    assert project.against_paper.reached(row) is reached


def on_the_substitute(made):
    for dataset in (GLOVE, dataset_info()):
        made.add([0.5, 0.6], dataset=dataset)
        made.add([0.6, 0.71], dataset=dataset, embedding="mlp")
        made.add([0.7, 0.82], dataset=dataset, embedding="identity")


def test_the_substitute_never_stands_beside_the_paper(project):
    keep_only(project, on_the_substitute)
    for name in ("paper", "controls", "tried"):
        assert GLOVE.name not in block(project, name)
    said = block(project, "substitute")
    assert f"| {GLOVE.name}: gcn, mlp embedding | 55.00 ± 7.07 |" in said
    assert "paper" not in said
    (line,) = [
        each for each in block(project, "results").splitlines() if "glove" in each
    ]
    assert line.endswith("| —, — |")


def test_gains_stand_beside_identity_and_the_papers_gain(project):
    keep_only(project, on_the_substitute)
    (line,) = block(project, "controls").splitlines()[2:]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:4] == ["55.00 ± 7.07", "65.50 ± 7.78", "76.00 ± 8.49"]
    assert cells[4] == "+2.88"
    assert cells[5].startswith("+10.50 [")
    assert cells[6].startswith("−10.50 [")


def on_both(made):
    on_the_substitute(made)
    tuned = {"model.backbone": "tuned", "train.label_input": 0.5}
    made.add([0.99, 0.98], embedding="mlp", **tuned)
    made.add([0.8, 0.9], model="gpr-gnn")


def test_our_best_stands_beside_the_best_published(project):
    keep_only(project, on_both)
    official, with_labels, substitute = block(project, "leaders").splitlines()[2:]
    assert official.startswith("| minesweeper | gpr-gnn | 85.00 ± 7.07 |")
    assert official.endswith("| 2 | CSNN | 99.07 ± 0.25 | −14.07 |")
    labels_as_input = "| minesweeper | tuned gcn, ECG (mlp) + labels | 98.50"
    assert with_labels.startswith(labels_as_input)
    assert with_labels.endswith("| labels are no input there | — | — |")
    assert substitute.startswith(f"| {GLOVE.name} | gcn, ECG (mlp) | 65.50 ± 7.78 |")
    assert substitute.endswith("| none | — | — |")
    lines = block(project, "leaderboard").splitlines()[2:7]
    assert [line.split(" | ")[1] for line in lines] == [
        "best published: CSNN",
        "gpr-gnn *",
        "gcn, ECG (mlp)",
        "gcn",
        "tuned gcn, ECG (mlp) + labels",
    ]


def test_other_models_are_no_cells_of_the_papers(project):
    keep_only(project, on_both)
    assert "tuned" not in block(project, "substitute")
    assert "gpr-gnn" not in block(project, "paper")  # a bar is for its own models
    assert "tuned" not in block(project, "results")


def test_what_is_missing_is_named(project):
    keep_only(project, lambda made: made.add([0.5] * 10))
    said = block(project, "missing")
    assert "- `paper-best` on tolokers: everything" in said
    assert "baseline of resnet; ECG (mlp), random, identity of gcn" in said
    assert "- `statistics` on minesweeper: everything" in said
    assert "- `beyond` on tolokers: everything" in said
    tuned = {"model.backbone": "tuned", "train.label_input": 0.5}
    tuned |= {"model.layers": 12, "model.hidden": 64, "train.steps": 2000}

    def beyond_on_minesweeper():
        lines = block(project, "missing").split("\n")
        (line,) = [line for line in lines if "eyond` on m" in line]
        return line

    kept = tuned | {"model.gate": "node", "model.drop_edge": 0.0}
    keep_only(project, lambda m: m.add([0.5] * 10, embedding="identity", **kept))
    assert beyond_on_minesweeper().endswith("everything")  # other edges were dropped
    smaller = tuned | {"model.layers": 4}
    keep_only(project, lambda made: made.add([0.5] * 10, **smaller))
    assert beyond_on_minesweeper().endswith("everything")  # another network
    keep_only(project, lambda made: made.add([0.5] * 10, **tuned))
    line = beyond_on_minesweeper()
    assert line.startswith(
        "- `beyond` on minesweeper: baseline, ECG (mlp) cross-fitted gated"
    )
    assert "identity gated + labels of tuned gcn (12 × 64); baseline, baseline" in line


SMALL = {"model.backbone": "tuned", "model.layers": 4, "model.hidden": 128}
SMALL |= {"model.dropout": 0.3, "train.steps": 1000, "train.lr": 5e-3}
PUBLISHED = SMALL | {"model.layers": 9, "model.hidden": 256, "train.steps": 2500}
PUBLISHED |= {"train.lr": 1e-3}
NETWORKS = {"small network": SMALL, "published network": PUBLISHED}
MLP = {"embed.hidden": 64, "embed.steps": 9}


@pytest.mark.parametrize("name", NETWORKS)
def test_one_network_is_compared_with_itself_alone(project, name):
    network = NETWORKS[name]

    def fill(made):
        def add(mean, *, splits=3, **rest):
            tests = [mean, mean + 0.01, mean - 0.01][:splits]
            made.add(tests, model="sage", dataset=GLOVE, **rest)

        add(0.5, **network)
        add(0.9, **network | {"model.layers": 5})
        add(0.9, **network | {"train.steps": 2000})
        add(0.9, **network | {"train.label_input": 0.5})
        add(0.6, **network | {"model.gate": "node"}, embedding="identity")
        add(0.55, **network, embedding="identity")
        add(0.95, **network | {"model.evolved_layers": "last"}, embedding="identity",
            splits=1)  # fmt: skip
        add(0.7, **network | MLP | {"model.drop_edge": 0.97}, embedding="mlp-gnn")
        add(0.8, **network | MLP | {"model.gate": "node"}, embedding="mlp-gnn",
            splits=2)  # fmt: skip

    keep_only(project, fill)
    lines = block(project, name).splitlines()
    assert lines[2:] == [
        "| ECG (mlp-gnn) * | 97% | 64 wide, 9 steps | 70.00 | 70.00 ± 1.00 "
        "| **+20.00 [+20.00, +20.00]** | **+10.00 [+10.00, +10.00]** |",
        "| identity, gated * | — | — | 60.00 | 60.00 ± 1.00 | — | — |",
        "| identity | — | — | 55.00 | 55.00 ± 1.00 | — | — |",
        "| baseline | — | — | 50.00 | 50.00 ± 1.00 | — | — |",
    ]


def test_statistics_that_are_not_the_papers_are_named(project):
    own = {"edge_homophily": 0.68, "adjusted_homophily": 0.04, "num_edges": 39_402}
    own |= {"label_informativeness": 0.0}
    keep_only(project, lambda made: made.add([0.5], dataset=dataset_info(**own)))
    said = block(project, "statistics")
    assert "minesweeper, G: 3 of 4; not h_adj (0.040 against 0.01)" in said


def test_places_of_a_machine_are_not_shown(project):
    command = "ecg-gnn study run smoke --store /a/b.sqlite --jobs 2 --data-root data"
    assert project.make.without_places(command) == "ecg-gnn study run smoke --jobs 2"


def test_nothing_run_is_said(project):
    keep_only(project, lambda made: made.add([0.5], dataset=GLOVE))
    blocks = ("paper", "controls", "substitute", "embeddings", *NETWORKS)
    for name in blocks:
        assert block(project, name) == project.quoting.NOTHING


def test_a_store_that_is_none_is_refused(project):
    with pytest.raises(InputError, match="does not exist"):
        project.make.add([project.root / "none.sqlite"])
    committed = (ROOT / "results" / "records.jsonl").read_bytes()
    assert project.make.RECORDS.read_bytes() == committed
