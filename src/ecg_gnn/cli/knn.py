"""``ecg-gnn knn``: the evolved graph of an embeddings file, however large."""

import dataclasses
import math
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.options import with_settings
from ecg_gnn.cli.show import ProgressDisplay, print_json
from ecg_gnn.config import EvolveConfig, known
from ecg_gnn.evolve.joint_search import PATIENCE, WrittenGraph, write_knn_graph
from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.reading import map_array_file
from ecg_gnn.scale.processes import joined
from ecg_gnn.system.checks import InputError, check_in_range

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
            help=".npy file for the edges [2, E], sources above targets. An exact "
            "search that was interrupted goes on from OUT.partial.",
            rich_help_panel=opt.OUTPUT,
        ),
    ],
    seed: Annotated[int, typer.Option(help="Of ties, and of an index.")] = 0,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GIB",
            help="GiB that an exact search may take, in each process; half of what is "
            "free unless given.",
        ),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="How long to wait for another process of torchrun."
        ),
    ] = PATIENCE.total_seconds(),
    device: opt.Device = None,
    as_json: opt.AsJson = False,
) -> None:
    """Find every row's nearest neighbours in a file, and write the edges to another.

    Under torchrun (`torchrun --nproc-per-node 2 -m ecg_gnn knn ...`) all processes
    search together: each finds the neighbours of its share of the rows, and the edges
    are those that one process finds.
    """
    asked = EvolveConfig(**{"k": _DEFAULT_K, **settings})
    check_in_range("patience", patience, 1, timedelta(days=7).total_seconds())
    if out.suffix != ".npy":
        raise InputError(f"'out' must be an .npy file (got {out.name!r})")
    opt.check_apart(out, embeddings)
    array = map_array_file(embeddings)
    with joined() as processes:
        first = processes.rank == 0
        written = _write(array, out, asked, seed, memory, patience, device, show=first)
    if written is not None and first:
        _print(written, as_json)


def _write(
    array: Any,
    out: Path,
    asked: EvolveConfig,
    seed: int,
    memory: float | None,
    patience: float,
    device: str | None,
    *,
    show: bool,
) -> WrittenGraph | None:
    with ProgressDisplay() if show else nullcontext() as display:
        tell = None if display is None else display.start(out.name, "kNN search")
        return write_knn_graph(
            array,
            out,
            known(asked.k),
            metric=asked.similarity,
            self_loops=asked.self_loops,
            symmetric=asked.symmetric,
            seed=seed,
            knn=asked.knn,
            memory=_bytes(memory),
            device=_own_device(device),
            patience=timedelta(seconds=patience),
            progress=None
            if tell is None
            else lambda done, total: tell(done, total, math.nan),
        )


def _bytes(gib: float | None) -> int | None:
    if gib is None:
        return None
    check_in_range("memory", gib, 2**-20, 2**20)
    return int(gib * 2**30)


def _own_device(name: str | None) -> torch.device:
    """On GPUs every process has one of its own."""
    device = pick_device(name or "auto")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def _print(written: WrittenGraph, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(written))
        return
    how = "exact"
    if written.recall is not None:
        how = f"{written.method}, {written.recall:.1%} of the true neighbours"
    print(
        f"{written.num_edges:,} edges of {written.num_nodes:,} nodes in {written.out} "
        f"({how})"
    )
