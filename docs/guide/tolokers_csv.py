"""The guide's real graph as CSV files: ``python tolokers_csv.py FOLDER``.

Tolokers: workers of a crowdsourcing platform, joined where they worked on the same
task; which of them were banned from a project?
"""

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ecg_gnn import GraphDataset, load_dataset

CLASSES = ("no", "yes")


def comes_later(node: int) -> bool:
    """Whether a worker is kept for new_nodes.csv, one in twenty."""
    return node % 20 == 0


def is_held_out(node: int) -> bool:
    """Whether a worker's class is left out of nodes.csv, one in ten."""
    return node % 10 == 7


def write_tables(graph: GraphDataset, folder: Path, most: int | None = None) -> None:
    """Write nodes, edges, new_nodes, new_edges, and answers: what was kept back.

    Args:
        graph: A graph with two classes.
        folder: Where to; it is made.
        most: Take only so many nodes, from the first on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = dict(enumerate(graph.y[:most].tolist()))
    banned = {node: CLASSES[y] for node, y in known.items()}
    row = {node: [f"w{node}", *graph.x[node].tolist()] for node in known}
    later = [node for node in known if comes_later(node)]
    first = [node for node in known if not comes_later(node)]
    hidden = [node for node in first if is_held_out(node)]
    shown = banned | dict.fromkeys(hidden, "")
    header = ["id", *(f"f{place}" for place in range(graph.num_features))]
    label = "banned"
    _write(folder / "nodes.csv", [*header, label], ([*row[n], shown[n]] for n in first))
    _write(folder / "new_nodes.csv", header, (row[n] for n in later))
    answers = ([f"w{n}", banned[n]] for n in [*hidden, *later])
    _write(folder / "answers.csv", ["id", label], answers)
    pairs = [(u, v) for u, v in graph.edge_index.t().tolist() if u < v < len(known)]
    for name, wanted in (("edges.csv", False), ("new_edges.csv", True)):
        chosen = (pair for pair in pairs if any(map(comes_later, pair)) == wanted)
        ends = ([f"w{u}", f"w{v}"] for u, v in chosen)
        _write(folder / name, ["source", "target"], ends)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    write_tables(load_dataset("tolokers"), Path(sys.argv[1]))
