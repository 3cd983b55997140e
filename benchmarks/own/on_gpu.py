"""The search on a GPU beside the search on CPUs: seconds of its networks, and scores.

    python benchmarks/own/on_gpu.py --graphs minesweeper-gen --out gpu.json

Every network of the search takes a few steps on each device, all folds together; then
whole searches have the same budget. Graphs of one's own are those of `run.py`.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from run import parser_of_graphs, read_graph, truth_of, with_split

from ecg_gnn.ensemble.candidates import candidates
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.ensemble.members import Job, fold_count, make_folds
from ecg_gnn.ensemble.network_members import fit_networks
from ecg_gnn.ensemble.weighted import hidden_target
from ecg_gnn.inference.best_fit import fit_best
from ecg_gnn.system.files import write_json
from ecg_gnn.system.machine import using_threads

STEPS = 40
METRICS = {0: "r2", 2: "roc-auc"}


def time_networks(graph, device):
    """Milliseconds of a step of every network, as the search trains it."""
    values, classes = truth_of(graph)
    part = graph.dataset.split(0)
    known = (part.train_mask | part.val_mask).numpy()
    target, _ = hidden_target(values, classes, known)
    inputs = GraphInputs.of(graph.dataset.x.numpy(), graph.dataset.edge_index)
    folds = make_folds(target, np.flatnonzero(known), fold_count(int(known.sum())), 0)
    metric = METRICS.get(classes, "accuracy")
    given = inputs, target, dict(enumerate(folds)), metric, np.inf, bool
    job = Job(*given, device=device)
    milliseconds = {}
    for each in candidates():
        if not each.layers:
            continue
        seconds = []
        for steps in (8, STEPS + 8):  # what is made once is in both
            shape = replace(each.fit.args[0], steps=steps, patience=steps)
            start = time.perf_counter()
            fit_networks(shape, 0, job)
            seconds.append(time.perf_counter() - start)
        milliseconds[each.name] = 1000 * (seconds[1] - seconds[0]) / STEPS
    return milliseconds


def search(graph, device, budget):
    """Scores of one search, and how much it tried."""
    with tempfile.TemporaryDirectory() as folder:
        model = fit_best(graph, Path(folder) / "m", budget=budget, device=device)
    found = model.metrics
    rows = found["leaderboard"]
    return {
        **{key: found[key] for key in ("metric", "validation", "test", "seconds")},
        "tried": len(rows),
        "failed": found["failed"],
        "leaderboard": rows,
    }


def main():
    """Measure every graph on every device, and write it down."""
    parser = parser_of_graphs(__doc__)
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--devices", default="cpu,cuda")
    arguments = parser.parse_args()
    rows = {}
    for name in arguments.graphs.split(","):
        graph = read_graph(name, arguments.own, arguments.data_root)
        graph = with_split(graph, name, 0)
        for device in arguments.devices.split(","):
            with using_threads(1):
                steps = time_networks(graph, device)
            found = search(graph, device, arguments.budget)
            rows[f"{name}/{device}"] = {"milliseconds": steps, "search": found}
            print(f"{name} on {device}, milliseconds of a step:")
            for network, taken in steps.items():
                print(f"  {network}: {taken:.1f}")
            print(
                f"  search: {found['tried']} tried in {found['seconds']:.0f} s, "
                f"{found['metric']} {found['validation']:.4f} on held-out nodes, "
                f"test {found['test']:.4f}, failed: {found['failed'] or 'none'}",
                flush=True,
            )
            if device != "cpu":
                rows["gpu"] = torch.cuda.get_device_name(torch.device(device))
            write_json(arguments.out, rows)


if __name__ == "__main__":
    main()
