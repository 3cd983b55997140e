"""Which tile sizes the GPU's search likes: one table per size of the problem.

    python benchmarks/tune_knn.py            # needs a CUDA device and Triton

Every row is the median of interleaved rounds in milliseconds. The floor is one TF32
product of all N x N scores that selects nothing.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.gpu import list_size
from ecg_gnn.evolve.exact.gpu.halves import Halves
from ecg_gnn.evolve.exact.gpu.maxima import Tiling, group_maxima, top
from ecg_gnn.evolve.exact.gpu.tiled import SLACK, decide, member_scores, search_tiled
from ecg_gnn.evolve.exact.ties import Task
from ecg_gnn.kernels import using_engine
from ecg_gnn.kernels.hashing import distinct_rows

Work = Callable[[], object]
SHAPES = [
    (128, 128, 64, 4, 3),
    (128, 128, 64, 4, 4),
    (128, 128, 64, 8, 3),
    (128, 128, 64, 8, 4),
    (128, 128, 32, 4, 4),
    (128, 128, 128, 8, 2),
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (256, 128, 64, 8, 3),
    (256, 128, 64, 8, 4),
    (64, 256, 64, 4, 3),
    (128, 64, 64, 4, 4),
]


def tilings() -> Iterator[Tiling]:
    """Shapes of tiles, and for one of them the squares in which they are taken."""
    for rows, columns, depth, warps, stages in SHAPES:
        yield Tiling(rows, columns, depth, 2048, warps, stages)
    yield Tiling(square=1024)
    yield Tiling(square=4096)


def milliseconds(work: Work) -> float:
    """Of one call."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop)


def table(title: str, todo: dict[str, Work], rounds: int) -> None:
    """Time all of them, interleaved, and print the medians."""
    print(f"\n{title}\n\n| what | median ms | min ms |\n|---|---|---|")
    times: dict[str, list[float]] = {}
    for name, work in list(todo.items()):
        try:
            work()  # compiles
            times[name] = []
        except Exception as error:
            print(f"| {name} | {type(error).__name__}: {str(error)[:60]} | |")
    for _ in range(rounds):
        for name in times:
            times[name].append(milliseconds(todo[name]))
    for name, found in times.items():
        print(f"| {name} | {statistics.median(found):.3f} | {min(found):.3f} |")


def gemm(rows: Tensor, precision: str) -> Work:
    """All scores, block by block, in TF32 or in the rows' own type."""
    block = 8192
    scores = rows.new_empty((block, rows.size(0)))

    def work() -> None:
        torch.set_float32_matmul_precision(precision)
        for part in rows.split(block):
            torch.mm(part, rows.t(), out=scores[: part.size(0)])
        torch.set_float32_matmul_precision("highest")

    return work


def embeddings(kind: str, num_nodes: int, dim: int) -> Tensor:
    """Random rows, or 18 clusters with so much noise."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(num_nodes, dim, generator=generator)
    if kind == "random":
        return noise
    centres = torch.randn(18, dim, generator=generator)
    label = torch.randint(18, (num_nodes,), generator=generator)
    return centres[label] + float(kind) * noise


def tune(num_nodes: int, dim: int, k: int, rounds: int) -> None:
    """Floors, the parts of a search, and all tilings."""
    z = embeddings("random", num_nodes, dim).cuda()
    canonical = canonicalise(z, "cosine")
    task, halves = Task(canonical, k, 0), Halves.of(canonical)
    count, slack = list_size(k), (SLACK * halves.bound).float()
    maxima = group_maxima(halves, 0, num_nodes)
    groups = top(maxima, count, k, slack)
    scores = member_scores(halves, 0, groups.places)
    members = top(scores, count, k, slack)
    proposal = decide(task, halves, 0, groups, members)
    looked_at = [
        float((t.places >= 0).sum(1).float().mean()) for t in (groups, members)
    ]
    print(f"\n## {num_nodes} x {dim}, k = {k}")
    print(f"bound {float(halves.bound.max()):.2e}; groups, candidates {looked_at};")
    print(f"sure {float(proposal.sure.float().mean()):.4%}")
    parts: dict[str, Work] = {
        "TF32 product (floor)": gemm(z, "high"),
        "float16 product": gemm(halves.rows, "highest"),
        "canonicalise": lambda: canonicalise(z, "cosine"),
        "distinct_rows": lambda: distinct_rows(canonical.grid),
        "Halves.of": lambda: Halves.of(canonical),
        "group_maxima": lambda: group_maxima(halves, 0, num_nodes),
        "member_scores": lambda: member_scores(halves, 0, groups.places),
        "top of members": lambda: top(scores, count, k, slack),
        "decide": lambda: decide(task, halves, 0, groups, members),
        "search_tiled": lambda: search_tiled(task),
        "knn_graph": lambda: knn_graph(z, k),
    }
    for block, rows in product((512, 1024, 2048), (1, 4)):
        parts[f"top of groups, block {block}, rows {rows}"] = (
            lambda block=block, rows=rows: top(
                maxima, count, k, slack, block=block, rows=rows
            )
        )
    table("Parts", parts, rounds)
    table(
        "Group maxima",
        {str(t): lambda t=t: group_maxima(halves, 0, num_nodes, t) for t in tilings()},
        rounds,
    )


def check(num_nodes: int, dim: int, k: int, rounds: int) -> None:
    """The same neighbours by the plain path, and both times."""
    for kind in ("random", "0.3", "0.1", "0.03"):
        z = embeddings(kind, num_nodes, dim).cuda()
        sure = search_tiled(Task(canonicalise(z, "cosine"), k, 0))[1]
        with using_engine("reference"):
            want = knn_graph(z, k)
        same = torch.equal(want, knn_graph(z, k))
        print(f"\n{kind}: same {same}, sure {float(sure.float().mean()):.4%}")

        def plain(z: Tensor = z) -> None:
            with using_engine("reference"):
                knn_graph(z, k)

        todo: dict[str, Work] = {"fast": lambda z=z: knn_graph(z, k), "plain": plain}
        table(f"knn_graph, {kind}, {num_nodes} x {dim}", todo, rounds)


def main() -> None:
    """Tune at two sizes, check at the smaller one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[48921, 22662])
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__)
    for num_nodes in arguments.nodes:
        tune(num_nodes, arguments.dim, arguments.k, arguments.rounds)
    check(min(arguments.nodes), arguments.dim, arguments.k, 3)


if __name__ == "__main__":
    main()
