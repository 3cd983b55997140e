"""``ecg-gnn bench``: how fast it is here."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ecg_bench import NOISE
from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import ProgressDisplay, print_json, print_table
from ecg_gnn.config import declared
from ecg_gnn.system.checks import check_choice, check_in_range

if TYPE_CHECKING:
    from ecg_bench.knn_timing import KnnRow
    from ecg_bench.step_timing import StepRow

app = typer.Typer(
    no_args_is_help=True, help="Measure speed and memory on this machine."
)


@app.command()
@opt.verb()
def train(
    data_root: Path | None = None,
    device: str | None = None,
    precision: Annotated[
        str, typer.Option(help=f"{declared()['train.precision'].help}.")
    ] = "auto",
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these datasets; repeatable.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Only these models; repeatable.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds.")] = 5,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the small width.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            help="fast, or reference (plain torch, the same numbers up to rounding)."
        ),
    ] = None,
    json_: bool = False,
) -> None:
    """Time a training step with its evaluation against plain PyG, in one process.

    On a CPU: minesweeper and tolokers, four models, two sizes. "x floor" is the time
    over an estimate of the least: what matrix products, copies and gathers take at the
    rates measured here.
    """
    check_in_range("rounds", rounds, 1, None)
    from ecg_bench.step_timing import bench_train, default_cells
    from ecg_gnn.pipeline.resolve import pick_device
    from ecg_gnn.train import default_precision

    place = pick_device(device or "auto")
    cells = default_cells(place, quick)
    for name in dataset or []:
        check_choice("dataset", name, dict.fromkeys(cell.dataset for cell in cells))
    for name in model or []:
        check_choice("model", name, dict.fromkeys(cell.model for cell in cells))
    chosen = [
        cell
        for cell in cells
        if (not dataset or cell.dataset in dataset)
        and (not model or cell.model in model)
    ]
    rows: list[StepRow] = []
    with ProgressDisplay() as display:
        for row in bench_train(
            chosen,
            device=place,
            precision=default_precision(place) if precision == "auto" else precision,
            engine=engine or "fast",
            rounds=rounds,
            data_root=data_root,
        ):
            rows.append(row)
            display.say(
                f"[{len(rows)}/{len(chosen)}] {row.dataset} {row.model} "
                f"d={row.hidden}: {row.speedup:.1f} x PyG"
            )
    if json_:
        print_json([dataclasses.asdict(row) for row in rows])
        return
    print_table(_table(rows))
    mean = math.exp(sum(math.log(row.speedup) for row in rows) / len(rows))
    print(f"Geometric mean: {mean:.2f} times as fast as plain PyG")


def _table(rows: "list[StepRow]") -> tuple[list[str], list[list[str]]]:
    header = ["dataset", "model", "d/L", "ours ms", "PyG ms", "PyG/ours", "x floor"]
    header += ["peak MiB", "PyG peak MiB"]
    cells = [
        [
            row.dataset,
            row.model,
            f"{row.hidden}/{row.layers}",
            f"{1e3 * row.ours_s:.1f}",
            f"{1e3 * row.pyg_s:.1f}",
            f"{row.speedup:.2f}",
            f"{row.floor_ratio:.2f}",
            "" if row.peak_mb is None else f"{row.peak_mb:.0f}",
            "" if row.pyg_peak_mb is None else f"{row.pyg_peak_mb:.0f}",
        ]
        for row in rows
    ]
    return header, cells


@app.command()
@opt.verb()
def knn(
    nodes: Annotated[int, typer.Option(help="Rows to search among.")] = 22_662,
    dim: Annotated[int, typer.Option(help="Their length.")] = 512,
    k: Annotated[int, typer.Option("--k", help="Neighbours per node.")] = 10,
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"Only some of {', '.join(NOISE)}; repeatable."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds.")] = 3,
    device: str | None = None,
    json_: bool = False,
) -> None:
    """Time exact cosine kNN against scikit-learn, FAISS and plain torch.

    In one process, on generated rows. "x floor" is the time over an
    estimate of the least: the matrix product of all rows with all rows (TF32 on a GPU),
    of which ours computes half;
    "agree" is the share of nodes with the neighbours of a float64 search.
    """
    for name, value, least in (("nodes", nodes, 2), ("dim", dim, 1)):
        check_in_range(name, value, least, None)
    check_in_range("k", k, 1, nodes - 1)
    check_in_range("rounds", rounds, 1, None)
    for kind in data or []:
        check_choice("data", kind, NOISE)
    from ecg_bench.knn_timing import bench_knn
    from ecg_gnn.pipeline.resolve import pick_device

    rows: list[KnnRow] = []
    with ProgressDisplay() as display:
        found = bench_knn(
            data or list(NOISE),
            nodes=nodes,
            dim=dim,
            k=k,
            device=pick_device(device or "auto"),
            rounds=rounds,
            say=display.say,
        )
        rows.extend(found)
    if json_:
        print_json([dataclasses.asdict(row) for row in rows])
        return
    print_table(_knn_table(rows))


def _knn_table(rows: "list[KnnRow]") -> tuple[list[str], list[list[str]]]:
    header = ["data", "N x D, k", "ours ms", "x floor", "agree", "peak MiB"]
    peers = ["torch", "sklearn", "faiss"]
    header += [text for peer in peers for text in (f"{peer}/ours", "agree")]
    cells = []
    for row in rows:
        found = dataclasses.asdict(row)
        line = [row.data, f"{row.nodes} x {row.dim}, {row.k}"]
        line += [f"{1e3 * row.ours_s:.1f}", f"{row.floor_ratio:.2f}"]
        line += [f"{row.agreement:.2%}"]
        line += ["" if row.peak_mb is None else f"{row.peak_mb:.0f}"]
        for peer in peers:
            speedup, agreement = found[f"speedup_{peer}"], found[f"agreement_{peer}"]
            here = speedup is not None
            line += [f"{speedup:.2f}" if here else "not here"]
            line += [f"{agreement:.2%}" if here else ""]
        cells.append(line)
    return header, cells
