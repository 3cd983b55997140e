"""How far the rules of Minesweeper get with the training labels: a ceiling, no model.

    python results/minesweeper_rules.py [--data-root FOLDER] [--dataset NAME]

A cell that shows a number has so many mines around it. Whoever knows some labels can
tell others: if all mines are found the rest are free, if as many are missing as there
are unknown cells they are mines; again and again. What cannot be told is ranked by the
mean share of mines that its neighbours still miss.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from ecg_gnn.data import GraphDataset, load_dataset

AT_LEAST = 5  # the last column says "five or more"


def shown_numbers(x: NDArray[np.float32]) -> NDArray[np.int64]:
    """Mines around each cell, -1 where its number is hidden, ``[N]``."""
    return np.where(x[:, 0] == 1, -1, x[:, 1:].argmax(1))


def deduce(
    around: csr_array, shown: NDArray[np.int64], known: NDArray[np.int64]
) -> NDArray[np.int64]:
    """All that follows from known labels: 1 mine, 0 free, -1 open, ``[N]``.

    Args:
        around: The adjacency matrix. ``[N, N]``
        shown: The numbers, -1 where hidden. ``[N]``
        known: Labels, -1 where unknown. ``[N]``
    """
    known = known.copy()
    while True:
        open_around, missing = _state(around, shown, known)
        exact = (shown >= 0) & (shown < AT_LEAST) & (open_around > 0)
        free = exact & (missing == 0)
        mines = (shown >= 0) & (open_around > 0) & (missing == open_around)
        open_cells = known < 0
        now_free = open_cells & (around @ free.astype(int) > 0)
        now_mine = open_cells & (around @ mines.astype(int) > 0)
        if not (now_free | now_mine).any():
            return known
        known[now_free], known[now_mine] = 0, 1


def rank(
    around: csr_array, shown: NDArray[np.int64], known: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How likely each cell is a mine, ``[N]``: labels where known, else a guess."""
    open_around, missing = _state(around, shown, known)
    tells = (shown >= 0) & (open_around > 0)
    share = np.where(tells, missing / np.maximum(open_around, 1), 0.0)
    voices = around @ tells.astype(int)
    mean = (around @ share) / np.maximum(voices, 1)
    guess = np.where(voices > 0, mean, (known == 1).sum() / (known >= 0).sum())
    return np.where(known >= 0, known, guess)


def _state(
    around: csr_array, shown: NDArray[np.int64], known: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Open cells around each cell, and mines still missing there."""
    return around @ (known < 0).astype(int), shown - around @ (known == 1).astype(int)


def ceiling(dataset: GraphDataset, split: int) -> tuple[float, float, float]:
    """Share of test cells deduced, share of those right, ROC AUC of all."""
    nodes = dataset.num_nodes
    source, target = dataset.edge_index.numpy()
    ones = np.ones(source.size, dtype=np.int64)
    around = csr_array((ones, (target, source)), shape=(nodes, nodes))
    masks, y = dataset.split(split), dataset.y.numpy()
    test = masks.test_mask.numpy()
    shown = shown_numbers(dataset.x.numpy())
    known = deduce(around, shown, np.where(masks.train_mask.numpy(), y, -1))
    told = test & (known >= 0)
    right = float((known[told] == y[told]).mean())
    auc = roc_auc_score(y[test], rank(around, shown, known)[test])
    return told.sum() / test.sum(), right, float(auc)


def main() -> None:
    """Every split, and the mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dataset", default="minesweeper")
    parser.add_argument("--data-root", type=Path)
    args = parser.parse_args()
    dataset = load_dataset(args.dataset, data_root=args.data_root)
    shares = np.array([ceiling(dataset, split) for split in range(dataset.num_splits)])
    print("| split | deduced | of these right | ROC AUC |\n|---|---|---|---|")
    for split, (told, right, auc) in enumerate(shares):
        print(f"| {split} | {told:.1%} | {right:.1%} | {100 * auc:.2f} |")
    told, right, auc = shares.mean(0)
    print(f"| mean | {told:.1%} | {right:.1%} | {100 * auc:.2f} |")


if __name__ == "__main__":
    main()
