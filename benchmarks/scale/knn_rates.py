"""How fast exact kNN searches are here.

    python benchmarks/scale/knn_rates.py --device cuda --json FILE

A rate is N x N x D over seconds: ``ecg_gnn.evolve.backends`` holds those that ``auto``
reckons with, and is where a better measurement belongs. What would take longer than is
left of ``--seconds`` is left out, and named.
"""

import argparse
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.backends import exact_seconds
from ecg_gnn.study.records import provenance
from ecg_gnn.system.files import write_json

sys.path.append(str(Path(__file__).resolve().parents[1]))
from ecg_bench.knn_timing import embeddings

K = 10
SIZES = {
    "cuda": [(50_000, 128), (200_000, 64), (1_000_000, 64)],
    "cpu": [(50_000, 128)],
}
ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One search of one kind of rows."""

    data: str
    nodes: int
    dim: int
    seconds: float
    rate: float
    assumed: float
    """The rate that ``auto`` reckons with"""


def seconds_of_search(z: torch.Tensor, left: float) -> float:
    """The median of a few rounds, as far as there is time for them."""
    times: list[float] = []
    while len(times) <= ROUNDS and (not times or len(times) * times[0] < left / 4):
        started = time.perf_counter()
        knn_graph(z, K)
        if z.is_cuda:
            torch.cuda.synchronize(z.device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:] or times)  # the first one warms up


def measure(
    kind: str, nodes: int, dim: int, device: torch.device, left: float
) -> Timing:
    """The search among rows of one kind."""
    seconds = seconds_of_search(embeddings(kind, nodes, dim).to(device), left)
    products = float(nodes) ** 2 * dim
    return Timing(
        data=kind,
        nodes=nodes,
        dim=dim,
        seconds=seconds,
        rate=products / seconds,
        assumed=products / exact_seconds(nodes, dim, device.type),
    )


def table(rows: list[Timing]) -> str:
    """Markdown."""
    lines = ["| rows | seconds | rate | assumed |", "|---|---|---|---|"]
    lines += [
        f"| {row.data}, {row.nodes:,} × {row.dim} | {row.seconds:.3g} "
        f"| {row.rate:.2g} | {row.assumed:.2g} |"
        for row in rows
    ]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--sizes", help="like 50000x128,200000x64")
    parser.add_argument("--kinds", default="clusters,random")
    parser.add_argument("--seconds", type=float, default=50.0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    """Measure, print a table, write the record after every size."""
    args = arguments()
    device = torch.device(args.device)
    sizes = SIZES[device.type]
    if args.sizes:
        sizes = [tuple(map(int, size.split("x"))) for size in args.sizes.split(",")]
    ends = time.perf_counter() + args.seconds
    rows: list[Timing] = []
    for nodes, dim in sizes:
        for kind in args.kinds.split(","):
            left = ends - time.perf_counter()
            if exact_seconds(nodes, dim, device.type) > left:
                print(f"left out: {kind}, {nodes:,} × {dim}", flush=True)
                continue
            rows.append(measure(kind, nodes, dim, device, left))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
            if args.json is not None:
                write_json(args.json, record(rows, str(device)))
    print(table(rows))


def record(rows: list[Timing], device: str) -> dict[str, Any]:
    """The timings, and how they were made."""
    return {
        "command": " ".join(["python", *sys.argv]),
        "made_with": provenance(device),
        "rows": [asdict(row) for row in rows],
    }


if __name__ == "__main__":
    main()
