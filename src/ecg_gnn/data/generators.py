"""Generated graphs: Minesweeper boards, block models, and groups of look-alikes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data.dataset import GraphDataset, make_dataset
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.seeds import derive_seed

_Generator = Callable[..., GraphDataset]
_MAX_NODES = 50_000_000
_MAX_EDGES = 2_000_000_000

# The fewest nodes of a class that reach train, validation and test.
_MIN_PER_CLASS = 3

# Columns of Minesweeper's features, as in the benchmark's file: 0 says that the
# number is hidden, 1..6 are one-hot for 0, 1, 2, 3, 4 and "5 or more" mines around.
_UNKNOWN_COLUMN = 0
_LARGEST_COUNT = 5


def minesweeper_gen(
    rows: int = 50,
    cols: int = 50,
    mines: float = 0.2,
    unknown: float = 0.5,
    seed: int = 0,
    num_splits: int = 10,
) -> GraphDataset:
    """A Minesweeper board by the recipe of the benchmark's ``minesweeper``.

    Cells are nodes, joined to their up to eight neighbours; class 1 is a mine. The
    features tell how many neighbours are mines (of mines, too), with five or more in
    one column, except where a cell's number is hidden. At 100 × 100 the edges are the
    benchmark's.

    Args:
        rows: Height of the board.
        cols: Width of the board.
        mines: Fraction of cells that are mines, rounded to a whole number of cells.
        unknown: Fraction of cells whose number is hidden, rounded alike.
        seed: Random seed.
        num_splits: How many stratified splits to draw.
    """
    given = dict(locals())
    _check_int("rows", rows, 1, _MAX_NODES)
    _check_int("cols", cols, 1, _MAX_NODES)
    num_nodes = rows * cols
    check_in_range("rows * cols", num_nodes, 2 * _MIN_PER_CLASS, _MAX_NODES)
    check_in_range("mines", mines, 0, 1)
    check_in_range("unknown", unknown, 0, 1)
    num_mines = round(mines * num_nodes)
    if not _MIN_PER_CLASS <= num_mines <= num_nodes - _MIN_PER_CLASS:
        raise InputError(
            f"'mines' must leave at least {_MIN_PER_CLASS} mines and as many free "
            f"cells (got {mines}: {num_mines} mines among {num_nodes} cells)"
        )
    rng = np.random.default_rng(derive_seed(seed, _name(minesweeper_gen)))
    y = np.zeros(num_nodes, dtype=np.int64)
    y[rng.permutation(num_nodes)[:num_mines]] = 1
    hidden = rng.permutation(num_nodes)[: round(unknown * num_nodes)]
    edges = king_grid(rows, cols)
    x = minesweeper_features(edges, y, hidden)
    return _made(minesweeper_gen, given, x=x, y=y, edges=edges)


def king_grid(rows: int, cols: int) -> NDArray[np.int64]:
    """Every pair of cells a chess king's move apart, once, [E, 2]."""
    cell = np.arange(rows * cols).reshape(rows, cols)
    pairs = [
        (cell[:, :-1], cell[:, 1:]),
        (cell[:-1, :], cell[1:, :]),
        (cell[:-1, :-1], cell[1:, 1:]),
        (cell[:-1, 1:], cell[1:, :-1]),
    ]
    ends = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]
    return np.concatenate(ends)


def minesweeper_features(
    edges: NDArray[np.int64], y: NDArray[np.int64], hidden: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The seven columns, from undirected edges, mines, and the hidden cells."""
    u, v = edges.T
    count = np.bincount(u, weights=y[v], minlength=len(y))
    count += np.bincount(v, weights=y[u], minlength=len(y))
    column = 1 + np.minimum(count.astype(np.int64), _LARGEST_COUNT)
    column[hidden] = _UNKNOWN_COLUMN
    x = np.zeros((len(y), 2 + _LARGEST_COUNT), dtype=np.float32)
    x[np.arange(len(y)), column] = 1
    return x


def csbm(
    nodes: int = 2000,
    classes: int = 2,
    degree: float = 10.0,
    homophily: float = 0.2,
    features: int = 16,
    signal: float = 1.0,
    seed: int = 0,
    num_splits: int = 10,
) -> GraphDataset:
    """A contextual stochastic block model, in time linear in nodes and edges.

    Classes are of equal size. Each edge starts at a uniform node and ends, with
    probability ``homophily``, at another node of its class, else at a node of another
    class. A feature vector is its class's mean plus standard normal noise.

    Args:
        nodes: How many nodes.
        classes: How many classes.
        degree: Mean degree. Edges drawn twice are kept once, so dense graphs have
            somewhat less.
        homophily: Probability that an edge joins nodes of one class.
        features: How many features.
        signal: Length of the class means, each in a random direction.
        seed: Random seed.
        num_splits: How many stratified splits to draw.
    """
    return _block_model(csbm, dict(locals()))


def look_alikes(
    nodes: int = 2000,
    classes: int = 2,
    group: int = 20,
    degree: float = 10.0,
    homophily: float = 0.5,
    features: int = 64,
    signal: float = 5.0,
    seed: int = 0,
    num_splits: int = 10,
) -> GraphDataset:
    """Groups of nodes that look alike, of one class each, in a graph that tells little.

    Built so that evolved edges help: many groups share a class and have nothing else in
    common, so a node is best recognised by those that look like it. Every group has a
    mean in a random direction, of length ``signal``; a node's features are that of its
    group plus standard normal noise. Edges are drawn as in ``csbm``, without regard to
    groups. A class has as many groups of ``group`` nodes as its nodes fill; the other
    arguments are those of ``csbm``.
    """
    return _block_model(look_alikes, dict(locals()), group)


def _block_model(
    generator: _Generator, given: Mapping[str, Any], group: int | None = None
) -> GraphDataset:
    """A graph of blocks of nodes, of ``group`` nodes each or of a class each."""
    nodes, classes, features = (given[k] for k in ("nodes", "classes", "features"))
    if group is not None:
        _check_int("group", group, 1, max(1, nodes // max(classes, 1)))
    _check_int("classes", classes, 2, _MAX_NODES // _MIN_PER_CLASS)
    _check_int("nodes", nodes, classes * _MIN_PER_CLASS, _MAX_NODES)
    _check_int("features", features, 1, _MAX_EDGES // nodes)
    most = min(nodes - 1, 2 * _MAX_EDGES // nodes)
    check_in_range("degree", given["degree"], 0, most)
    check_in_range("homophily", given["homophily"], 0, 1)
    check_in_range("signal", given["signal"], 0, 1e6)
    rng = np.random.default_rng(derive_seed(given["seed"], _name(generator)))
    block = rng.permutation(nodes)
    block = block % classes if group is None else block // group
    y = block % classes
    means = rng.standard_normal((int(block.max()) + 1, features), dtype=np.float32)
    means *= np.float32(given["signal"]) / np.linalg.norm(means, axis=1, keepdims=True)
    x = rng.standard_normal((nodes, features), dtype=np.float32)
    x += means[block]
    edges = _block_edges(y, round(nodes * given["degree"] / 2), given["homophily"], rng)
    return _made(generator, given, x=x, y=y, edges=edges)


def _block_edges(
    y: NDArray[np.int64], num_edges: int, homophily: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pairs of distinct nodes, of one class with probability ``homophily``, [E, 2]."""
    num_nodes = len(y)
    by_class = np.argsort(y, kind="stable")
    size = np.bincount(y)
    first = np.cumsum(size) - size
    # Positions in class order: a class is a block, and partners are found by
    # stepping around the block (never back to the start) or around all else.
    start = rng.integers(num_nodes, size=num_edges)
    inside = rng.random(num_edges) < homophily
    block = y[by_class[start]]
    step = rng.integers(np.where(inside, size[block] - 1, num_nodes - size[block]))
    around = first[block] + (start - first[block] + 1 + step) % size[block]
    outside = (first[block] + size[block] + step) % num_nodes
    end = np.where(inside, around, outside)
    return np.stack([by_class[start], by_class[end]], axis=1)


def _name(generator: _Generator) -> str:
    return generator.__name__.replace("_", "-")


def _check_int(name: str, value: Any, low: int, high: int) -> None:
    """Refuse anything but a whole number in the range."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise InputError(f"{name!r} must be a whole number (got {value!r})")
    check_in_range(name, int(value), low, high)


def _made(
    generator: _Generator, given: Mapping[str, Any], **arrays: Any
) -> GraphDataset:
    """The graph, under the name that generates it again: what is not the default."""
    usual = inspect.signature(generator).parameters
    changed = [
        f"{k}={value}" for k, value in given.items() if value != usual[k].default
    ]
    name = ":".join(filter(None, [_name(generator), ",".join(changed)]))
    seed = derive_seed(given["seed"], "splits")
    return make_dataset(name=name, num_splits=given["num_splits"], seed=seed, **arrays)
