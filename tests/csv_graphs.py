"""Files to import: tables of a generated graph, and a ring as every graph file."""

import csv

import numpy as np
import torch
from scipy.io import savemat
from scipy.sparse import csc_array
from torch_geometric.data import Data

from ecg_gnn.data import csbm
from small_runs import ring_arrays

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


def ring_data():
    """A ring as PyG has it; its first node has no class."""
    found = ring_arrays()
    y = torch.from_numpy(found["node_labels"])
    y[0] = -1
    data = Data(
        x=torch.from_numpy(found["node_features"]).float(),
        y=y,
        edge_index=torch.from_numpy(found["edges"].T.copy()),
    )
    part = torch.arange(12) // 2 % 3
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    return data


def save_ring_npz(path):
    data = ring_data()
    np.savez(
        path,
        node_features=data.x,
        node_labels=data.y,
        edges=data.edge_index.t(),
        train_masks=data.train_mask[None],
        val_masks=data.val_mask[None],
        test_masks=data.test_mask[None],
        node_ids=np.array([f"v{i}" for i in range(12)]),
    )


def save_ring_mat(path):
    """24 people as facebook100 has them: every third of unknown gender."""
    people = np.arange(24)
    info = np.zeros((24, 7), dtype=np.int32)
    info[:, 0], info[:, 1], info[:, 5] = 1 + people % 2, people % 3, 2004 + people % 6
    ends = (people, (people + 1) % 24)
    ring = csc_array((np.ones(24), ends), shape=(24, 24))
    savemat(path, {"A": ring + ring.T, "local_info": info}, do_compression=True)
