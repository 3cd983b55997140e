"""Exact cosine kNN: ours against scikit-learn, FAISS and plain torch, interleaved.

The floor is the matrix product alone, tile by tile, selecting nothing: what every
method has to do that computes all N x N scores; ours computes half of them. On a GPU
the floor may use TF32.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ecg_bench import NOISE
from ecg_bench.hardware_floor import timed
from ecg_bench.peak_memory import peak_mb
from ecg_gnn.evolve import knn_graph
from ecg_gnn.train import computing_in, default_precision

_NUM_CLUSTERS = 18
_BLOCK = {"cpu": 1024, "cuda": 8192}
_CALLS = {"cpu": 1, "cuda": 10}

Search = Callable[[Tensor, int], Tensor]  # neighbours [N, k], without the node itself


@dataclass(frozen=True, kw_only=True)
class KnnRow:
    """Median seconds over the rounds; None for peers that are not here.

    A spread is the range of the rounds over their median.
    An agreement is the share of nodes whose neighbours are those of a float64 search.
    """

    data: str
    nodes: int
    dim: int
    k: int
    device: str
    threads: int
    ours_s: float
    floor_s: float
    floor_ratio: float
    torch_s: float
    sklearn_s: float | None
    faiss_s: float | None
    speedup_torch: float
    speedup_sklearn: float | None
    speedup_faiss: float | None
    agreement: float
    agreement_torch: float
    agreement_sklearn: float | None
    agreement_faiss: float | None
    ours_spread: float
    torch_spread: float
    sklearn_spread: float | None
    faiss_spread: float | None
    peak_mb: float | None


def bench_knn(
    kinds: Sequence[str],
    *,
    nodes: int,
    dim: int,
    k: int,
    device: torch.device,
    rounds: int = 3,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[KnnRow]:
    """Time every kind of data; rows come as they are measured, ``say`` hears of it."""
    for kind in kinds:
        z = embeddings(kind, nodes, dim).to(device)
        yield _bench_data(z, kind, k, rounds, say)


def embeddings(kind: str, num_nodes: int, dim: int) -> Tensor:
    """Rows of one kind, always the same."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(num_nodes, dim, generator=generator)
    noise = NOISE[kind]
    if noise is None:
        return rows
    centres = torch.randn(_NUM_CLUSTERS, dim, generator=generator)
    label = torch.randint(_NUM_CLUSTERS, (num_nodes,), generator=generator)
    return centres[label] + noise * rows


def _bench_data(
    z: Tensor, kind: str, k: int, rounds: int, say: Callable[[str], None]
) -> KnnRow:
    device = z.device
    methods = {name: partial(search, z, k) for name, search in _methods(device).items()}
    say(f"{kind}: the float64 search to compare with")
    want = torch_topk(z.double(), k).sort(1).values
    say(f"{kind}: warming up")
    found, peak = peak_mb(methods["ours"], device)
    agreement = {"ours": _agreement(found, want)}
    for name in methods.keys() - agreement.keys():
        agreement[name] = _agreement(methods[name](), want)
    times: dict[str, list[float]] = {name: [] for name in (*methods, "floor")}
    for done in range(rounds):  # interleaved: a slow spell of the machine hits all
        say(f"{kind}: round {done + 1} of {rounds}")
        for name, search in methods.items():
            times[name].append(timed(search, device, _CALLS[device.type]))
        with computing_in(default_precision(device), device):
            work = partial(_products, z)
            times["floor"].append(timed(work, device, _CALLS[device.type]))
    return _row(z, kind, k, times, agreement, peak)


def _agreement(found: Tensor, want: Tensor) -> float:
    return float((found.sort(1).values == want).all(1).double().mean())


def _row(
    z: Tensor,
    kind: str,
    k: int,
    times: dict[str, list[float]],
    agreement: dict[str, float],
    peak: float | None,
) -> KnnRow:
    median = {name: statistics.median(found) for name, found in times.items()}
    ours = median["ours"]
    speedup = {name: seconds / ours for name, seconds in median.items()}
    spread = {name: (max(t) - min(t)) / median[name] for name, t in times.items()}
    return KnnRow(
        data=kind,
        nodes=z.size(0),
        dim=z.size(1),
        k=k,
        device=str(z.device),
        threads=torch.get_num_threads(),
        ours_s=ours,
        floor_s=median["floor"],
        floor_ratio=ours / median["floor"],
        torch_s=median["torch"],
        sklearn_s=median.get("sklearn"),
        faiss_s=median.get("faiss"),
        speedup_torch=speedup["torch"],
        speedup_sklearn=speedup.get("sklearn"),
        speedup_faiss=speedup.get("faiss"),
        agreement=agreement["ours"],
        agreement_torch=agreement["torch"],
        agreement_sklearn=agreement.get("sklearn"),
        agreement_faiss=agreement.get("faiss"),
        ours_spread=spread["ours"],
        torch_spread=spread["torch"],
        sklearn_spread=spread.get("sklearn"),
        faiss_spread=spread.get("faiss"),
        peak_mb=peak,
    )


def _methods(device: torch.device) -> dict[str, Search]:
    """Ours, and the peers that can run here."""
    found: dict[str, Search] = {"ours": _ours, "torch": torch_topk}
    if device.type == "cpu":
        found["sklearn"] = sklearn_brute
        if find_spec("faiss") is not None:
            found["faiss"] = faiss_flat
    return found


def _ours(z: Tensor, k: int) -> Tensor:
    return knn_graph(z, k)[0].view(-1, k)


def torch_topk(z: Tensor, k: int) -> Tensor:
    """Blocked matrix product and topk: what one writes by hand."""
    z, size = normalize(z), _BLOCK[z.device.type]
    found = []
    for start in range(0, z.size(0), size):
        scores = z[start : start + size] @ z.t()
        scores.diagonal(start).fill_(-torch.inf)
        found.append(scores.topk(k).indices)
    return torch.cat(found)


def sklearn_brute(z: Tensor, k: int) -> Tensor:
    """scikit-learn, which leaves out the node itself when asked without queries."""
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=k, algorithm="brute", metric="cosine")
    return torch.from_numpy(model.fit(z.numpy()).kneighbors(return_distance=False))


def faiss_flat(z: Tensor, k: int) -> Tensor:
    """FAISS's exact index; asked for one more, as it finds the node itself."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    rows = normalize(z).numpy()
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    found = torch.from_numpy(index.search(rows, k + 1)[1])
    other = found != torch.arange(z.size(0)).unsqueeze(1)
    other[:, -1] &= other.sum(1) <= k  # itself not among them: drop the last
    return found[other].view(-1, k)


def _products(z: Tensor) -> None:
    """All products, tile by tile; nothing reads them.

    On a CPU a tile stays in the cache. On a GPU its rows start at round addresses, as
    fast kernels want them; rows of an odd number of scores would not.
    """
    size = _BLOCK[z.device.type]
    buffer = z.new_empty((size, size))
    for rows in z.split(size):
        for columns in z.split(size):
            out = buffer[: rows.size(0), : columns.size(0)]
            torch.mm(rows, columns.t(), out=out)
