"""A stranger's files: tables of a generated heterophilous graph, good and bad."""

import csv

import numpy as np

from ecg_gnn.data import csbm

CITIES = ("Oslo", "Lima", "Pune", "Kyiv")
WORDS = ("red", "green", "blue", "old", "new", "small", "large", "round")
NEW = 12
"""Nodes that are not in the first two files: they come later."""


def write_csv(path, header, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def stranger_tables(num_nodes=150, classes=3, seed=0):
    """Header and rows of all nodes and of all edges; classes are words."""
    graph = csbm(
        nodes=num_nodes, classes=classes, homophily=0.1, signal=1.5, seed=seed, degree=6
    )
    rng = np.random.default_rng(seed)
    y, x = graph.y.numpy(), graph.x.numpy()
    nodes = []
    for row in range(num_nodes):
        words = rng.choice(WORDS, 3).tolist()
        numbers = [f"{value:.4f}" for value in x[row, :6]]
        if rng.random() < 0.1:
            numbers[0] = ""
        city = CITIES[y[row] % 4] if rng.random() < 0.4 else rng.choice(CITIES)
        kind = f"kind-{'abc'[y[row]]}"
        nodes.append([f"n{row:03}", *numbers, city, " ".join(words), kind])
    header = ["id", *(f"f{i}" for i in range(6)), "city", "words", "kind"]
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    edges = [[f"n{u:03}", f"n{v:03}"] for u, v in once.t().tolist()]
    return header, nodes, ["source", "target"], edges


def write_stranger(folder, unlabelled=20, **options):
    """The first two files (the last nodes left out), and the two that come later.

    Returns the true class of every node by its name.
    """
    header, nodes, ends, edges = stranger_tables(**options)
    truth = {row[0]: row[-1] for row in nodes}
    late = {row[0] for row in nodes[-NEW:]}
    first = [list(row) for row in nodes[:-NEW]]
    for row in first[:unlabelled]:
        row[-1] = ""
    write_csv(folder / "nodes.csv", header, first)
    kept = [pair for pair in edges if not set(pair) & late]
    write_csv(folder / "edges.csv", ends, [*kept, kept[0], ["n001", "n001"]])
    write_csv(folder / "new_nodes.csv", header[:-1], [r[:-1] for r in nodes[-NEW:]])
    write_csv(folder / "new_edges.csv", ends, [p for p in edges if set(p) & late])
    return truth
