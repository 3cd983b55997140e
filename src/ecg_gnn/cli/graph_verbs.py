"""``ecg-gnn homophily`` and ``ecg-gnn knn``: an evolved graph, measured or written."""

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.config import EvolveConfig, RunConfig, known
from ecg_gnn.config.run_config import fields_of
from ecg_gnn.data import load_dataset
from ecg_gnn.reading import read_array_file
from ecg_gnn.study.records import of_evolved, of_input
from ecg_gnn.study.table import graph_name, graph_table
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.files import write_array

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

    h_edge, node and class homophily, adjusted homophily and label informativeness.
    Edges of an undirected graph count once; evolved edges are directed, so each counts.

    Options:
        split: Split whose training labels the embedding may see.
    """
    asked = RunConfig.of(**{"preset": "auto", "splits": (split,)} | settings)
    terminal.warn_of_cross_fit(asked.embed.cross_fit, asked.embed.names)
    embedding = ",".join(settings.get("embedding", ["none"]))
    if "," in embedding:
        raise InputError(f"'embedding' must be a single one here (got {embedding!r})")
    with terminal.ProgressDisplay() as display:
        loaded = load_dataset(asked.dataset, data_root=data_root)
        evolved = None
        if embedding != "none":
            # With PyG, which the graph itself is measured without.
            from ecg_gnn.pipeline import evolve, resolve
            from ecg_gnn.pipeline.workspace import Workspace

            workspace = Workspace(
                cache=opt.default_cache(),
                progress=lambda work: display.start(embedding, work),
            )
            resolved = resolve(asked, loaded)
            graph = evolve(embedding, loaded, loaded.split(split), resolved, workspace)
            evolved = of_evolved(graph, loaded)
    statistics = {"graph": of_input(loaded), "evolved": evolved}
    if json_:
        terminal.print_json(statistics)
        return
    if loaded.note:
        print(f"Note: {loaded.note}")
    graphs = {"G": statistics["graph"], graph_name(asked, embedding): evolved}
    rows = {name: row for name, row in graphs.items() if row is not None}
    terminal.print_table(graph_table(rows), loaded.name)
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
        memory: GiB that blocks of scores may take (an eighth, on a GPU one).
        patience: Has no effect any more.

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

    with terminal.ProgressDisplay() as display:
        show = display.start(out.name, "kNN search")
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
        terminal.print_json({**sizes, "method": graph.method, "recall": graph.recall})
    else:
        print(f"{num_edges:,} edges of {num_nodes:,} nodes in {out} ({how})")
