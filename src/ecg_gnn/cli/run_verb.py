"""``ecg-gnn run``, and its steps by themselves: ``homophily`` and ``knn``."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.cli.terminal import ProgressDisplay, print_json, print_table
from ecg_gnn.config import EvolveConfig, RunConfig, declared, known
from ecg_gnn.config.classify_settings import BY_HOMOPHILY, MODULES, SPECIALISED
from ecg_gnn.config.embedders import EMBEDDING_HELP
from ecg_gnn.config.identity import BASELINE
from ecg_gnn.config.run_config import fields_of, nest_options
from ecg_gnn.data import load_dataset
from ecg_gnn.reading import read_array_file, read_text, read_yaml
from ecg_gnn.study import run_figure, table
from ecg_gnn.study.records import measure
from ecg_gnn.study.verdict import verdict
from ecg_gnn.system.cells import without_html
from ecg_gnn.system.checks import InputError, MissingExtraError, check_in_range
from ecg_gnn.system.files import write_array, write_text

if TYPE_CHECKING:
    from ecg_gnn.study import Record, Report


def _read_config(path: Path | None) -> dict[str, Any]:
    """Settings from a YAML or JSON file (JSON is YAML); none without a path."""
    if path is None:
        return {}
    values = read_yaml(str(path), read_text(path))
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a mapping of settings (got {values!r})")
    return values


# What `fit`, `advise` and the estimators choose, too.
_DEFAULTS = {"preset": "auto", "model": {"name": BY_HOMOPHILY}}


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Settings with others over them, section by section."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name, {})
        if not isinstance(value, dict):
            result[name] = value
        elif isinstance(below, dict):  # else it is no section, which is refused later
            result[name] = _merged(below, value)
    return result


_HELPS = {
    "embed.names": f"{EMBEDDING_HELP}. Repeat it to compare several; mlp,bgrl puts two "
    "evolved graphs into one model.",
    "model.name": f"Message passing: one of {', '.join(MODULES)} (gcn or sage, by "
    f"homophily); or a whole network: one of {', '.join(SPECIALISED)}.",
}


@opt.verb(declared(), helps=_HELPS)
def run(
    settings: dict[str, Any],
    data_root: Path | None = None,
    config: Path | None = None,
    workers: int = 0,
    jobs: int = 1,
    out: Path | None = None,
    json_: bool = False,
) -> None:
    """Train baseline, ECG and its controls on the same splits, and compare.

    The output folder gets everything: settings, raw results of every split, versions,
    the data's checksum, tables and a figure. Without options it runs on a generated
    Minesweeper board in a few minutes. Options that are not given are chosen by the
    graph, as in `fit` and `advise`.

    Options:
        config: YAML or JSON with settings, such as the config.json of an earlier run;
            options given here take precedence.
        jobs: Parallel runs, each in its own process.

    Graphs too large for full-batch steps:
        workers: Processes that prepare batches ahead; results stay the same.

    Output:
        out: Output folder; a run that was interrupted there is resumed. Default:
            runs/DATASET-MODEL-ID.
    """
    read = _merged(_DEFAULTS, _read_config(config))
    asked = RunConfig.from_dict(_merged(read, nest_options(settings)))
    terminal.warn_of_cross_fit(asked.embed.cross_fit, asked.embed.names)
    names = [name for name in asked.embed.names if name != "none"]
    from ecg_gnn.pipeline import choose_variants
    from ecg_gnn.study import run as run_all

    if "embedding" in settings and names and choose_variants(asked) == [BASELINE]:
        text = f"it runs without {' or '.join(names)}"
        terminal.warn(f"{asked.model.name} has no place for an evolved graph: {text}")
    display = ProgressDisplay()

    def on_record(record: "Record", done: int, total: int) -> None:
        display.say(
            f"[{done}/{total}] split {record.split} {table.run_name(asked, record)}: "
            f"test {100 * record.test:.2f} at step {record.best_step} "
            f"({record.seconds:.1f} s)"
        )

    with display:
        report = run_all(
            asked,
            data_root=data_root,
            out=out,
            out_root="runs",
            cache=opt.default_cache(),
            jobs=jobs,
            loader_workers=workers,
            on_progress=display.begin,
            on_record=on_record,
            on_reused=lambda count, total: display.say(
                f"{count} of {total} trainings are in the output folder already"
            ),
        )
    assert report.folder is not None
    said = "\n\n".join([table.report_markdown(report), *verdict(report), ""])
    write_text(report.folder / "results.md", without_html(said))
    try:
        run_figure.draw(report, report.folder / "figure.png")
    except MissingExtraError as error:
        write_text(report.folder / "figure-missing.txt", f"{error}\n")
    if json_:
        print_json(report.to_dict() | {"verdict": " ".join(verdict(report))})
    else:
        _print(report, report.folder)


def _print(report: "Report", folder: Path) -> None:
    for note in table.run_notes(report):
        print(f"Note: {note}")
    model = report.config.model
    name = table.model_name(model.backbone, model.name)
    print_table(table.result_table(report), f"{report.dataset} · {name}")
    print_table(table.statistics_table(report), "Homophily (evolved: mean over splits)")
    for sentence in verdict(report):
        print(sentence)
    names = [path.name for path in sorted(folder.iterdir()) if path.is_file()]
    print(f"In {folder}: {', '.join(names)}")


_LEGEND = (
    "h_adj: 1 where all neighbours share a class, 0 as by chance, below 0 where they "
    "avoid their own. LI: how much a neighbour's class tells of a node's, from 0 to 1."
)
_EVOLVING = fields_of("evolve") - {"evolve.weights"}


@opt.verb({*_EVOLVING, *fields_of("embed"), "dataset", "preset", "seed", "device"})
def homophily(
    settings: dict[str, Any],
    data_root: Path | None = None,
    split: int = 0,
    json_: bool = False,
) -> None:
    """Measure homophily of a graph and, with --embedding, of its evolved graph.

    Edge, node and class homophily, adjusted homophily and label informativeness.
    Edges of an undirected graph count once; evolved edges are directed, so each counts.

    Options:
        split: Split whose training labels the embedding may see.
    """
    asked = RunConfig.of(**{"preset": "auto", "splits": (split,)} | settings)
    terminal.warn_of_cross_fit(asked.embed.cross_fit, asked.embed.names)
    embedding = ",".join(settings.get("embedding", ["none"]))
    if "," in embedding:
        raise InputError(f"'embedding' must be a single one here (got {embedding!r})")
    with ProgressDisplay() as display:
        loaded = load_dataset(asked.dataset, data_root=data_root)
        evolved = None
        if embedding != "none":
            # With PyG, which the graph itself is measured without.
            from ecg_gnn.pipeline import evolve, resolve
            from ecg_gnn.pipeline.workspace import Workspace

            workspace = Workspace(
                cache=opt.default_cache(),
                progress=lambda work: display.begin(embedding, work),
            )
            resolved = resolve(asked, loaded)
            graph = evolve(embedding, loaded, loaded.split(split), resolved, workspace)
            evolved = measure(loaded, graph)
    statistics = {"graph": measure(loaded), "evolved": evolved}
    if json_:
        print_json(statistics)
        return
    if loaded.note:
        print(f"Note: {loaded.note}")
    graphs = {"G": statistics["graph"], table.graph_name(asked, embedding): evolved}
    rows = {name: row for name, row in graphs.items() if row is not None}
    print_table(table.graph_table(rows), loaded.name)
    if loaded.num_unlabelled:
        print("Counted over edges whose two ends have a class.")
    print(_LEGEND)


@opt.verb(_EVOLVING, preset="quick")
def knn(
    settings: dict[str, Any],
    embeddings: Path,
    out: Path,
    seed: int = 0,
    memory: Annotated[float | None, typer.Option(metavar="GIB")] = None,
    patience: Annotated[float | None, typer.Option(hidden=True)] = None,
    device: str | None = None,
    json_: bool = False,
) -> None:
    """Find the nearest neighbours of every row in a file; write the edges.

    Options:
        embeddings: .npy file with a row per node.
        seed: Random seed, for ties and for an index.
        memory: GiB for blocks of scores (default: 0.125, on a GPU 1).
        patience: No longer has any effect.

    Output:
        out: .npy file for the edges [2, E], sources above targets.
    """
    asked = EvolveConfig(**{"k": 10, **settings})
    if memory is not None:
        check_in_range("memory", memory, 2**-20, 2**20)
    if out.suffix != ".npy":
        raise InputError(f"'out' must be an .npy file (got {out.name!r})")
    opt.check_apart(out, embeddings)
    array = read_array_file(embeddings, most=sys.maxsize)
    from ecg_gnn.evolve import knn_search
    from ecg_gnn.pipeline.resolve import pick_device

    with ProgressDisplay() as display:
        show = display.begin(out.name, "kNN search")
        graph = knn_search(
            array,
            known(asked.k),
            metric=asked.similarity,
            self_loops=asked.self_loops,
            symmetric=asked.symmetric,
            seed=seed,
            knn=asked.knn,
            memory=None if memory is None else int(memory * 2**30),
            device=pick_device(device or "auto"),
            progress=lambda done, total: show(done, total, math.nan),
        )
        write_array(out, graph.edge_index.cpu().numpy())
    num_nodes, num_edges = len(array), graph.edge_index.size(1)
    how = "exact"
    if graph.recall is not None:
        how = f"{graph.method}, {graph.recall:.1%} of the true neighbours"
    if json_:
        sizes = {"out": str(out), "num_nodes": num_nodes, "num_edges": num_edges}
        print_json({**sizes, "method": graph.method, "recall": graph.recall})
    else:
        print(f"{num_edges:,} edges of {num_nodes:,} nodes in {out} ({how})")
