"""How fast exact kNN searches are here, in memory and in blocks.

    python benchmarks/scale/knn_rates.py --device cuda --json FILE

A rate is N x N x D over seconds: ``ecg_gnn.evolve.backends`` holds those that
``auto`` reckons with, and is where a better measurement belongs. The search in blocks
reads rows from the host and is held to a memory that its largest tiles just fit into;
it is timed on some of the rows against all of them, and its neighbours are compared
with those of the search in memory. What would take longer than is left of ``--seconds``
is left out, and named.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.backends import IN_BLOCKS, IN_MEMORY, Rate
from ecg_gnn.evolve.exact.blocks import Layout, search_blocks
from ecg_gnn.evolve.query import Query, Rows
from ecg_gnn.study.records import provenance
from ecg_gnn.system.files import write_json

sys.path.append(str(Path(__file__).resolve().parents[1]))
from ecg_bench.knn_timing import embeddings

K = 10
SIZES = {
    "cuda": [(50_000, 128), (200_000, 64), (1_000_000, 64)],
    "cpu": [(50_000, 128)],
}
MEMORY = {"cuda": 8 << 30, "cpu": 512 << 20}
ROWS_OF_PAIRS = {"cuda": 2e10, "cpu": 1e8}  # what a timing in blocks compares, at most
ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One search of one kind of rows."""

    data: str
    nodes: int
    dim: int
    search: str
    rows: int
    """Whose neighbours were looked for"""
    seconds: float
    rate: float
    assumed: float
    """The rate that ``auto`` reckons with"""
    same: bool | None
    """Whether the neighbours are those of the search in memory"""


class Clock:
    """Times work, and knows what is left."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        self.device, self.ends = device, time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds."""
        return self.ends - time.perf_counter()

    def once(self, work: Callable[[], Tensor]) -> tuple[float, Tensor]:
        """How long it takes, and what comes of it."""
        self._wait()
        started = time.perf_counter()
        found = work()
        self._wait()
        return time.perf_counter() - started, found

    def median(self, work: Callable[[], Tensor]) -> tuple[float, Tensor]:
        """Of a few rounds, as far as there is time for them; the first one warms up."""
        first, found = self.once(work)
        rounds = ROUNDS if (ROUNDS + 1) * first < self.left / 4 else 1
        again = [self.once(work)[0] for _ in range(rounds)] if first < 10 else [first]
        return statistics.median(again), found

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def in_blocks(z: Tensor, rows: int, device: torch.device) -> Tensor:
    """The neighbours of the first ``rows`` among all, block by block."""
    query = Query(k=K, metric="cosine", seed=0, device=device)
    on_gpu, given = device.type == "cuda", Rows.of(z)
    layout = Layout.fit(given, K, MEMORY[device.type], on_gpu=on_gpu)
    return torch.cat([b for _, b in search_blocks(given, query, layout, 0, rows)])


def timed_rows(nodes: int, device: torch.device) -> int:
    """Of how many rows a search in blocks is timed."""
    return min(nodes, int(ROWS_OF_PAIRS[device.type] / nodes))


def expected_seconds(
    nodes: int, dim: int, device: torch.device, last: list[Timing]
) -> float:
    """Of one round of both searches, by the rates of the last one."""
    counts = {"in memory": nodes, "in blocks": timed_rows(nodes, device)}
    return sum(counts[row.search] * nodes * dim / row.rate for row in last)


def measure(kind: str, nodes: int, dim: int, clock: Clock) -> list[Timing]:
    """Both searches among rows of one kind."""
    device = clock.device
    host = embeddings(kind, nodes, dim)
    here = host.to(device)
    alone_s, edges = clock.median(lambda: knn_graph(here, K))
    rows = timed_rows(nodes, device)
    blocks_s, found = clock.median(lambda: in_blocks(host, rows, device))
    want = edges[0].view(-1, K)[:rows].cpu()

    def timing(search: str, count: int, seconds: float, same: bool | None) -> Timing:
        rates = IN_MEMORY if search == "in memory" else IN_BLOCKS
        return Timing(
            data=kind,
            nodes=nodes,
            dim=dim,
            search=search,
            rows=count,
            seconds=seconds,
            rate=count * nodes * dim / seconds,
            assumed=_assumed(rates[device.type], dim),
            same=same,
        )

    return [
        timing("in memory", nodes, alone_s, None),
        timing("in blocks", rows, blocks_s, torch.equal(found, want)),
    ]


def _assumed(rate: Rate, dim: int) -> float:
    return rate.value * dim / (dim + rate.selection)


def table(rows: list[Timing]) -> str:
    """Markdown."""
    lines = ["| rows | search | of them | seconds | rate | assumed | same |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in rows:
        same = "" if row.same is None else ("yes" if row.same else "NO")
        lines.append(
            f"| {row.data}, {row.nodes:,} × {row.dim} | {row.search} | {row.rows:,} "
            f"| {row.seconds:.3g} | {row.rate:.2g} | {row.assumed:.2g} | {same} |"
        )
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
        sizes = [(int(n), int(d)) for n, _, d in _parted(args.sizes)]
    clock = Clock(device, args.seconds)
    rows: list[Timing] = []
    for nodes, dim in sizes:
        for kind in args.kinds.split(","):
            if 2 * expected_seconds(nodes, dim, device, rows[-2:]) > clock.left:
                print(f"left out: {kind}, {nodes:,} × {dim}", flush=True)
                continue
            rows += measure(kind, nodes, dim, clock)
            print("\n".join(table(rows).splitlines()[-2:]), flush=True)
            if args.json is not None:
                write_json(args.json, record(rows, str(device)))
    print(table(rows))


def _parted(text: str) -> list[tuple[str, str, str]]:
    return [part.partition("x") for part in text.split(",")]


def record(rows: list[Timing], device: str) -> dict[str, Any]:
    """The timings, and how they were made."""
    return {
        "command": " ".join(["python", *sys.argv]),
        "made_with": provenance(device),
        "rows": [asdict(row) for row in rows],
    }


if __name__ == "__main__":
    main()
