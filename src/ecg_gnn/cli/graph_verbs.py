"""``ecg-gnn homophily`` and ``ecg-gnn knn``: an evolved graph, measured or written."""

import math
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.config import EvolveConfig, RunConfig, known
from ecg_gnn.config.run_config import fields_of
from ecg_gnn.data import load_dataset
from ecg_gnn.reading import map_array_file
from ecg_gnn.study.records import of_evolved, of_input
from ecg_gnn.study.table import graph_name, graph_table
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.files import write_array

if TYPE_CHECKING:
    from ecg_gnn.evolve import KnnGraph

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
    patience: Annotated[float | None, typer.Option(metavar="SECONDS")] = None,
    device: str | None = None,
    json_: bool = False,
) -> None:
    """Find the nearest neighbours of every row in a file; write the edges.

    Under torchrun the first process searches and writes, and the others wait for it.

    Options:
        embeddings: .npy file with a row per node, read piece by piece.
        seed: Random seed, for ties and for an index.
        memory: GiB that an exact search may use (half of what is free).
        patience: Under torchrun, how long the other processes wait for the first (a
            day).

    Output:
        out: .npy file for the edges [2, E], sources above targets. An interrupted exact
            search resumes from OUT.partial.
    """
    asked = EvolveConfig(**{"k": 10, **settings})
    if memory is not None:
        check_in_range("memory", memory, 2**-20, 2**20)
    if patience is not None:
        check_in_range("patience", patience, 1, timedelta(days=7).total_seconds())
    if out.suffix != ".npy":
        raise InputError(f"'out' must be an .npy file (got {out.name!r})")
    opt.check_apart(out, embeddings)
    array = map_array_file(embeddings)
    import torch

    from ecg_gnn.evolve import knn_search
    from ecg_gnn.evolve.knn import PATIENCE, in_first_process
    from ecg_gnn.evolve.query import FinishedBlocks
    from ecg_gnn.pipeline.resolve import pick_device
    from ecg_gnn.system.machine import joined

    folder = out.with_name(f"{out.name}.partial")
    own_device = pick_device(device or "auto")
    if own_device.type == "cuda" and own_device.index is None:
        # Each process has its own GPU.
        own_device = torch.device("cuda", torch.cuda.current_device())

    def write() -> "KnnGraph":
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
                device=own_device,
                progress=lambda done, total: show(done, total, math.nan),
                folder=folder,
            )
            write_array(out, graph.edge_index.cpu().numpy())
            FinishedBlocks(folder).remove()
        return graph

    wait = PATIENCE if patience is None else timedelta(seconds=patience)
    with joined():
        graph = in_first_process(write, own_device, wait)
    if graph is None:  # in the first process only
        return
    num_nodes, num_edges = len(array), graph.edge_index.size(1)
    how = "exact"
    if graph.recall is not None:
        how = f"{graph.method}, {graph.recall:.1%} of the true neighbours"
    if json_:
        sizes = {"out": str(out), "num_nodes": num_nodes, "num_edges": num_edges}
        terminal.print_json({**sizes, "method": graph.method, "recall": graph.recall})
    else:
        print(f"{num_edges:,} edges of {num_nodes:,} nodes in {out} ({how})")
