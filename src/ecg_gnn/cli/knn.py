"""``ecg-gnn knn``: the evolved graph of an embeddings file, however large."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.options import with_settings
from ecg_gnn.cli.show import ProgressDisplay, print_json
from ecg_gnn.config import EvolveConfig, known
from ecg_gnn.evolve import KnnGraph, knn_search
from ecg_gnn.evolve.knn import PATIENCE, in_first_process
from ecg_gnn.evolve.query import FinishedBlocks, Progress
from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.reading import map_array_file
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.files import write_array
from ecg_gnn.system.machine import joined

_DEFAULT_K = 10


@with_settings(lambda name, _: name.startswith("evolve.") and name != "evolve.weights")
def knn(
    settings: dict[str, Any],
    embeddings: Annotated[
        Path,
        typer.Option(help=".npy file with a row per node; it is read piece by piece."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help=".npy file for the edges [2, E], sources above targets. An "
            "interrupted exact search resumes from OUT.partial.",
            rich_help_panel=opt.OUTPUT,
        ),
    ],
    seed: Annotated[
        int, typer.Option(help="Random seed, for ties and for an index.")
    ] = 0,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GIB",
            help="GiB that an exact search may take; half of what is free by default.",
        ),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Under torchrun, how long the other processes wait for the first.",
        ),
    ] = PATIENCE.total_seconds(),
    device: opt.Device = None,
    as_json: opt.AsJson = False,
) -> None:
    """Find every row's nearest neighbours in a file, and write the edges to another.

    Under torchrun the first process searches and writes, and the others wait for it.
    """
    asked = EvolveConfig(**{"k": _DEFAULT_K, **settings})
    check_in_range("patience", patience, 1, timedelta(days=7).total_seconds())
    if out.suffix != ".npy":
        raise InputError(f"'out' must be an .npy file (got {out.name!r})")
    opt.check_apart(out, embeddings)
    array = map_array_file(embeddings)
    folder = out.with_name(f"{out.name}.partial")
    own_device = _own_device(device)

    def write(report: Progress | None) -> KnnGraph:
        graph = knn_search(
            array,
            known(asked.k),
            metric=asked.similarity,
            self_loops=asked.self_loops,
            symmetric=asked.symmetric,
            seed=seed,
            knn=asked.knn,
            memory=_bytes(memory),
            device=own_device,
            progress=report,
            folder=folder,
        )
        write_array(out, graph.edge_index.cpu().numpy())
        FinishedBlocks(folder).remove()
        return graph

    with joined() as processes, _shown_progress(out, processes.is_first) as report:
        patient = timedelta(seconds=patience)
        graph = in_first_process(lambda: write(report), own_device, patient)
    if graph is not None:
        _print(graph, out, len(array), as_json)


@contextmanager
def _shown_progress(out: Path, shown: bool) -> Iterator[Progress | None]:
    if not shown:
        yield None
        return
    with ProgressDisplay() as display:
        report = display.start(out.name, "kNN search")
        yield lambda done, total: report(done, total, math.nan)


def _bytes(gib: float | None) -> int | None:
    if gib is None:
        return None
    check_in_range("memory", gib, 2**-20, 2**20)
    return int(gib * 2**30)


def _own_device(name: str | None) -> torch.device:
    """Each process has its own GPU."""
    device = pick_device(name or "auto")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def _print(graph: KnnGraph, out: Path, num_nodes: int, as_json: bool) -> None:
    num_edges = graph.edge_index.size(1)
    if as_json:
        sizes = {"out": str(out), "num_nodes": num_nodes, "num_edges": num_edges}
        print_json({**sizes, "method": graph.method, "recall": graph.recall})
        return
    how = "exact"
    if graph.recall is not None:
        how = f"{graph.method}, {graph.recall:.1%} of the true neighbours"
    print(f"{num_edges:,} edges of {num_nodes:,} nodes in {out} ({how})")
