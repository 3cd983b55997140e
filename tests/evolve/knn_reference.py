"""The definition of the evolved graph in plain Python integers: independent."""

import math

from ecg_gnn.system.seeds import derive_seed

_MASK = (1 << 64) - 1


def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def draw(seed, node, pool, picks):
    """Floyd's algorithm on the pool's ranks."""
    stream = _mix((_mix(derive_seed(seed, "knn-ties")) + node) & _MASK)
    chosen = []
    for last in range(pool - picks, pool):
        rank = ((_mix((stream + last) & _MASK) >> 32) * (last + 1)) >> 32
        chosen.append(last if rank in chosen else rank)
    return chosen


def _on_grid(row):
    norm = math.sqrt(math.fsum(x * x for x in row)) or 1.0
    return [round(x / norm * 2**25) for x in row]


def similarity(u, v, metric):
    if metric == "euclidean":
        return -sum((a - b) ** 2 for a, b in zip(u, v, strict=True))
    return sum(a * b for a, b in zip(u, v, strict=True))


def reference_graph(z, k, metric="cosine", seed=0):
    """Edges (source, target), sorted by target and source; rows of small integers."""
    rows = [[int(x) for x in row] for row in z.tolist()]
    if metric == "cosine":
        rows = [_on_grid(row) for row in rows]
    edges = []
    for u, row in enumerate(rows):
        scores = {
            v: similarity(row, other, metric) for v, other in enumerate(rows) if v != u
        }
        threshold = sorted(scores.values(), reverse=True)[k - 1]
        chosen = [v for v, score in scores.items() if score > threshold]
        tied = [v for v, score in scores.items() if score == threshold]
        chosen += [tied[r] for r in draw(seed, u, len(tied), k - len(chosen))]
        edges += [(v, u) for v in sorted(chosen)]
    return edges
