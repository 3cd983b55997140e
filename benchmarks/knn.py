"""Exact cosine kNN: ours against scikit-learn, FAISS and plain PyTorch, side by side.

    python benchmarks/knn.py --json benchmarks/knn_cpu.json

All methods run in one process in interleaved rounds (A, B, C, A, B, C, ...), so that a
slow spell of the machine hits all of them. "gemm" only multiplies, block by block, and
selects nothing: the floor of every method that computes all N x N scores (ours
computes half). Agreement is the share of nodes whose neighbour set is the same as in a
float64 search: float32 methods lose it where similarities are close, ours only where
they differ by less than its grid.
"""

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ecg_gnn.evolve import knn_graph
from ecg_gnn.files import write_json

Search = Callable[[Tensor, int], Tensor | None]  # neighbours [N, k], without the node
BLOCK = 1024


def ours(z: Tensor, k: int) -> Tensor:
    """This package."""
    return knn_graph(z, k)[0].view(-1, k)


def torch_topk(z: Tensor, k: int) -> Tensor:
    """Blocked matmul and topk: what one writes by hand."""
    z = normalize(z)
    found = []
    for start in range(0, z.size(0), BLOCK):
        scores = z[start : start + BLOCK] @ z.t()
        scores.diagonal(start).fill_(-torch.inf)
        found.append(scores.topk(k).indices)
    return torch.cat(found)


def gemm(z: Tensor, k: int) -> None:
    """Only the products."""
    z = normalize(z)
    scores = z.new_empty((BLOCK, z.size(0)))
    for rows in z.split(BLOCK):
        torch.mm(rows, z.t(), out=scores[: rows.size(0)])


def sklearn_brute(z: Tensor, k: int) -> Tensor:
    """scikit-learn, which leaves out the node itself when asked without queries."""
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=k, algorithm="brute", metric="cosine")
    return torch.from_numpy(model.fit(z.numpy()).kneighbors(return_distance=False))


def faiss_flat(z: Tensor, k: int) -> Tensor:
    """FAISS's exact index; asked for one more, as it finds the node itself."""
    import faiss

    rows = normalize(z).numpy()
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    found = torch.from_numpy(index.search(rows, k + 1)[1])
    other = found != torch.arange(z.size(0)).unsqueeze(1)
    other[:, -1] &= other.sum(1) <= k  # itself not among them: drop the last
    return found[other].view(-1, k)


def methods(device: str) -> dict[str, Search]:
    """Those that can run here."""
    found: dict[str, Search] = {"ours": ours, "torch matmul+topk": torch_topk}
    if device == "cpu":
        found["sklearn brute"] = sklearn_brute
        try:
            import faiss

            faiss.omp_set_num_threads(torch.get_num_threads())
            found["faiss flat"] = faiss_flat
        except ImportError:
            print("faiss is not installed: left out", file=sys.stderr)
    return found | {"gemm (floor)": gemm}


def embeddings(kind: str, num_nodes: int, dim: int) -> Tensor:
    """Test data: random, or 18 clusters of smaller and smaller spread."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(num_nodes, dim, generator=generator)
    if kind == "random":
        return noise
    centres = torch.randn(18, dim, generator=generator)
    label = torch.randint(18, (num_nodes,), generator=generator)
    return centres[label] + float(kind.removeprefix("clusters ")) * noise


def true_neighbours(z: Tensor, k: int) -> Tensor:
    """A float64 search, ids ascending."""
    return torch_topk(z.double(), k).sort(1).values


def measure(z: Tensor, k: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Seconds of every round and the agreement, per method."""
    todo = methods(z.device.type)
    want = true_neighbours(z, k)
    results: dict[str, dict[str, Any]] = {name: {"seconds": []} for name in todo}
    for search in todo.values():
        search(z[:2000], k)  # warm up
    for _ in range(rounds):
        for name, search in todo.items():
            _synchronise(z)
            start = time.perf_counter()
            found = search(z, k)
            _synchronise(z)
            results[name]["seconds"].append(time.perf_counter() - start)
            if found is not None:
                same = (found.sort(1).values == want).all(1)
                results[name]["agreement"] = float(same.double().mean())
    base = statistics.median(results["ours"]["seconds"])
    for result in results.values():
        result["median"] = statistics.median(result["seconds"])
        result["ratio_to_ours"] = result["median"] / base
    return results


def _synchronise(z: Tensor) -> None:
    if z.is_cuda:
        torch.cuda.synchronize()


def machine(device: str) -> dict[str, Any]:
    """Where and with what the numbers were measured."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            x for x in info.read_text().splitlines() if x.startswith("model name")
        ]
        name = models[0].split(":", 1)[1].strip() if models else name
    packages = ("torch", "scikit-learn", "faiss-cpu")
    return {
        "cpu": name,
        "threads": torch.get_num_threads(),
        "load_before": os.getloadavg()[0],  # a busy machine's numbers mean little
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
        "command": " ".join(["python benchmarks/knn.py", *sys.argv[1:]]),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def print_table(kind: str, results: dict[str, dict[str, Any]]) -> None:
    """One Markdown table."""
    print(f"\n{kind}\n\n| method | median s | min-max s | vs ours | agreement |")
    print("|---|---|---|---|---|")
    for name, result in results.items():
        low, high = min(result["seconds"]), max(result["seconds"])
        agreement = result.get("agreement")
        shown = "" if agreement is None else f"{agreement:.4%}"
        print(
            f"| {name} | {result['median']:.3f} | {low:.3f}-{high:.3f} "
            f"| {result['ratio_to_ours']:.2f}x | {shown} |",
            flush=True,
        )


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=22662)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    record = {"machine": machine(arguments.device), "results": {}}
    for key in ("nodes", "dim", "k", "rounds"):
        record[key] = getattr(arguments, key)
    print(record["machine"])
    for kind in ("random", "clusters 0.3", "clusters 0.03"):
        z = embeddings(kind, arguments.nodes, arguments.dim).to(arguments.device)
        results = measure(z, arguments.k, arguments.rounds)
        record["results"][kind] = results
        print_table(kind, results)
    if arguments.json is not None:
        write_json(arguments.json, record)


if __name__ == "__main__":
    main()
