"""Features of nodes that have no columns: where they stand in the graph."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ecg_gnn.tabular.feature_blocks import Floats

_DAMPING = 0.85
_PAGERANK_STEPS = 50
_NUM_EIGENVECTORS = 16
_EXTRA_EIGENVECTORS = 8  # iterated along: they make the others converge
_EIGENVECTOR_STEPS = 40
# Triangles are counted if no more paths of length two must be looked at.
_MAX_PATHS = 20_000_000

MEASURES = "degrees, neighbours' degrees, PageRank, clustering, Laplacian eigenvectors"


def structure_features(pairs: NDArray[np.int64], num_nodes: int) -> NDArray[np.float32]:
    """Measures of nodes, ``[N, F]``, each with mean 0 and deviation 1.

    Edges ``[E, 2]`` are taken in both directions, repeats and self-loops left out. The
    same graph always gives the same features; no matrix is larger than N times 24.
    """
    source, target = pairs[pairs[:, 0] != pairs[:, 1]].T
    ends = np.r_[source, target], np.r_[target, source]
    shape = (num_nodes, num_nodes)
    adjacency = csr_array((np.ones(len(ends[0])), ends), shape=shape)  # adds repeats
    adjacency.data[:] = 1
    degree = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    inverse = np.divide(1.0, degree, out=np.zeros(num_nodes), where=degree > 0)
    log_degree = np.log1p(degree)
    measures = [
        log_degree[:, None],
        (inverse * (adjacency @ log_degree))[:, None],
        np.log(_pagerank(adjacency, inverse))[:, None],
        _eigenvectors(adjacency, np.sqrt(inverse)),
    ]
    if (degree**2).sum() <= _MAX_PATHS:
        # The share of a node's pairs of neighbours that are joined.
        triangles = (adjacency @ adjacency).multiply(adjacency).sum(axis=1)
        clustering = np.asarray(triangles) / np.maximum(degree * (degree - 1), 1)
        measures.append(clustering[:, None])
    features = np.hstack(measures)
    features -= features.mean(axis=0)
    deviation = features.std(axis=0)
    return (features / np.where(deviation > 1e-9, deviation, 1)).astype(np.float32)


def _pagerank(adjacency: csr_array, inverse_degree: Floats) -> Floats:
    """PageRank times the number of nodes; what isolated nodes have is spread evenly."""
    rank = np.ones(len(inverse_degree))
    for _ in range(_PAGERANK_STEPS):
        stuck = rank[inverse_degree == 0].sum() / len(rank)
        spread = adjacency @ (rank * inverse_degree)
        rank = 1 - _DAMPING + _DAMPING * (spread + stuck)
    return rank


def _eigenvectors(adjacency: csr_array, scale: Floats) -> Floats:
    """Smooth vectors: of the normalised Laplacian's smallest eigenvalues, nearly.

    A fixed number of block power iterations, which always ends, unlike exact solvers.
    """
    num_nodes = len(scale)
    width = min(_NUM_EIGENVECTORS + _EXTRA_EIGENVECTORS, num_nodes)
    vectors = np.random.default_rng(0).standard_normal((num_nodes, width))

    def step(block: Floats) -> Floats:  # all eigenvalues are in [0, 1]
        moved = scale[:, None] * (adjacency @ (scale[:, None] * block))
        smoothed: Floats = (block + moved) / 2
        return smoothed

    for _ in range(_EIGENVECTOR_STEPS):
        vectors, _ = np.linalg.qr(step(vectors))
    _, rotation = np.linalg.eigh(vectors.T @ step(vectors))
    vectors = (vectors @ rotation[:, ::-1])[:, :_NUM_EIGENVECTORS]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    vectors *= np.where(largest < 0, -1, 1)
    return np.where(scale[:, None] > 0, vectors, 0)
