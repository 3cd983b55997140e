"""What a command must give if it takes a file after all: read here in other ways."""

import csv

import numpy as np
import torch
from pyarrow import parquet

from ecg_gnn.tabular import load_named_graph
from malformed.archives import N
from small_runs import ring_arrays

USUAL_IDS = ("id", "node_id", "node")


def wrong_import(folder, command):
    """What is wrong with an imported graph; None if it is what its files say."""
    graph = load_named_graph(folder / "graph")
    options = dict(zip(command[2::2], command[3::2], strict=False))
    source = options.get("--graph")
    if source is None:
        nodes = _rows(folder / options["--nodes"])
        pairs = [list(row.values())[:2] for row in _rows(folder / options["--edges"])]
        return _wrong_tables(graph, nodes, pairs, options)
    return _wrong_ring(graph.dataset)


def _rows(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def _wrong_tables(graph, nodes, pairs, options):
    usual = [name for name in USUAL_IDS if name in nodes[0]]
    key = options.get("--id") or (usual or [next(iter(nodes[0]))])[0]
    ids = [str(row[key]).strip() for row in nodes]
    if list(graph.ids) != ids:
        return f"nodes {graph.ids[:5]} and not {ids[:5]}"
    said = [str(row.get(options["--label"]) or "").strip() for row in nodes]
    codes = graph.dataset.y.tolist()
    names = [graph.classes[code] if code >= 0 else "" for code in codes]
    if names != [text if text.lower() not in _NOTHING else "" for text in said]:
        return "other classes than the file has"
    wanted = {frozenset(map(str, pair)) for pair in pairs}
    found = {
        frozenset(graph.ids[end] for end in pair)
        for pair in graph.dataset.edge_index.t().tolist()
    }
    if found != {pair for pair in wanted if len(pair) == 2}:
        return "other edges than the file has"
    return None


_NOTHING = ("", "na", "n/a", "nan", "null", "none")


def _wrong_ring(dataset):
    """Binary files say the graph they were made from, or nothing."""
    good = ring_arrays(N)
    same = (
        np.array_equal(dataset.x.numpy(), good["node_features"].astype(np.float32)),
        np.array_equal(dataset.y.numpy(), good["node_labels"]),
        dataset.num_edges == N,
        torch.equal(dataset.train_masks, torch.from_numpy(good["train_masks"])),
    )
    return None if all(same) else "another graph than the one that was saved"
