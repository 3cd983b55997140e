"""Which pieces the Triton kernels should take: times every choice on this GPU.

    python benchmarks/tune_kernels.py --data-root DATA [--compile-with 12]

For each sparse operator, by how long rows are: all three kinds in tolokers (hubs), and
a graph of ten neighbours each. ``edges/values per thread/repeats: milliseconds`` (see
``launch.Tile``), best first; "TB/s" counts the bytes of gathered rows. Where a call
takes less than Python needs to make it, times say nothing. Compiling takes longer than
timing, so several processes can compile first.
"""

import argparse
import itertools
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.data import load_dataset
from ecg_gnn.kernels import Adjacency, additive_attention, dot_product_attention
from ecg_gnn.kernels.gpu import entry_points as functions
from ecg_gnn.kernels.gpu import launch

HEADS = 8
EDGES, PER_THREAD, REPEATS = (1, 2, 4, 8, 16), (16, 32, 64), (1, 4, 8)
TYPES = ((256, torch.float32), (256, torch.bfloat16), (512, torch.float32))


def milliseconds(work: Callable[[], object], calls: int = 10) -> float:
    """Median time of one call among many in a row."""
    work()
    times = []
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    return statistics.median(times)


def operators(
    adjacency: Adjacency, width: int, dtype: torch.dtype
) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Name, gathers, and a call of every sparse kernel."""
    n, c = adjacency.num_nodes, width // HEADS

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda").to(dtype).requires_grad_()

    x, packed = random(n, width).detach(), random(n, 3, c, HEADS)
    scores, values = random(n, 2, HEADS), random(n, c, HEADS)
    grad, scale = random(n, c, HEADS).detach(), torch.rand(n, device="cuda")
    pattern = functions.by_target(adjacency)

    def gat() -> torch.Tensor:
        return additive_attention(adjacency, scores, values)

    def gt() -> torch.Tensor:
        return dot_product_attention(adjacency, packed)

    def back(out: torch.Tensor, *inputs: torch.Tensor) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(out, inputs, grad, retain_graph=True)

    yield "sum", 1, lambda: functions.scaled_sum(pattern, x, scale, scale)
    yield "gat forward", 1, gat
    yield "gat backward", 1, back(gat(), scores, values)
    yield "gt forward", 2, gt
    yield "gt backward", 3, back(gt(), packed)


def graphs(root: Path | None) -> Iterator[tuple[str, Adjacency]]:
    """A name, and a graph of which only the rows of one kind are computed."""
    dataset = load_dataset("tolokers", data_root=root)
    n = dataset.num_nodes
    around = (torch.arange(n)[:, None] + torch.randint(1, n, (n, 10))) % n
    ten = torch.stack([around.flatten(), torch.arange(n).repeat_interleave(10)])
    for name, edges in (("ten", ten), ("tolokers", dataset.edge_index)):
        whole = Adjacency.from_edge_index(edges, n).to("cuda")
        for place in range(len(whole.by_target.buckets)):
            part = Adjacency.from_edge_index(edges, n).to("cuda")
            for order in (part.by_target, part.by_source):
                chosen = order.buckets[min(place, len(order.buckets) - 1)]
                order.__dict__["buckets"] = (chosen,)
            yield f"{name}, up to {part.by_target.buckets[0].highest}", part


def choices(width: int) -> list[launch.Tile]:
    """What is tried: not too much and not too little for a thread."""
    tried = itertools.product(EDGES, PER_THREAD, REPEATS)
    return [
        launch.Tile(edges * width, per_thread, repeats)
        for edges, per_thread, repeats in tried
        if edges * width >= 32 * per_thread
    ]


def edges_computed(adjacency: Adjacency) -> int:
    """Edges of the rows that are computed."""
    order = adjacency.by_target
    (bucket,) = order.buckets
    rows = order.heavy_first[bucket.first : bucket.first + bucket.nodes].long()
    return int(order.offsets.diff()[rows].sum())


def sweep(root: Path | None, share: tuple[int, int] | None) -> None:
    """Time everything and print, or only compile one share of it."""
    for name, adjacency in graphs(root):
        for width, dtype in TYPES:
            size = edges_computed(adjacency) * width * dtype.itemsize
            print(f"{name} d={width} {dtype}", flush=True)
            for label, gathers, work in operators(adjacency, width, dtype):
                found = {}
                for number, choice in enumerate(choices(width)):
                    launch._tile = lambda *_, choice=choice: choice
                    if share is not None:
                        if number % share[1] == share[0]:
                            work()
                        continue
                    found[choice] = milliseconds(work)
                ranked = sorted(found.items(), key=lambda item: item[1])
                best = "  ".join(
                    f"{v // width}/{p}/{r}: {t:.3f}" for (v, p, r), t in ranked[:5]
                )
                if ranked:
                    rate = gathers * size / ranked[0][1] / 1e9
                    print(f"  {label:13} {best}  {rate:.2f} TB/s", flush=True)
        if share is not None:
            return  # other graphs use the same programs


def main() -> None:
    """Compile in parallel, then sweep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--compile-with", type=int, default=0)
    parser.add_argument("--share", type=int, nargs=2)
    given = parser.parse_args()
    if given.share is not None:
        return sweep(given.data_root, tuple(given.share))
    command = [sys.executable, __file__]
    if given.data_root is not None:
        command += ["--data-root", str(given.data_root)]
    shares = [
        subprocess.Popen(
            [*command, "--share", str(i), str(given.compile_with)],
            stdout=subprocess.DEVNULL,
        )
        for i in range(given.compile_with)
    ]
    for process in shares:
        process.wait()
    return sweep(given.data_root, None)


if __name__ == "__main__":
    main()
