"""Do 90% sets cover 90%, and are probabilities calibrated? Ten draws of every graph.

    python benchmarks/own/coverage.py --out benchmarks/own/coverage_cpu.json

Models come from searches of ten seconds: certainty does not need the best of them. What
the record has for other graphs stays there.
"""

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from run import parser_of_graphs, read_graph, truth_of, with_split

from ecg_gnn.inference.best_fit import fit_best
from ecg_gnn.inference.fitting import calibration_error
from ecg_gnn.inference.predictions import predict_stored
from ecg_gnn.system.files import write_json

COVERAGE = 0.9


def measure(graph, name, draw, budget):
    """Coverage, mean size of sets and calibration error on the test nodes."""
    graph = with_split(graph, name, draw)
    with tempfile.TemporaryDirectory() as folder:
        model = fit_best(graph, Path(folder) / "model", budget=budget)
    said = predict_stored(model, every=True).with_coverage(model, COVERAGE)
    values, classes = truth_of(graph)
    test = np.flatnonzero(graph.dataset.test_masks[0].numpy())
    if not classes:
        inside = np.abs(said.probabilities[test, 0] - values[test]) <= said.half_width
        return {"coverage": float(inside.mean()), "width": 2 * said.half_width}
    y = values[test]
    return {
        "coverage": float(said.sets[test, y].mean()),
        "set_size": float(said.sets[test].sum(axis=1).mean()),
        "calibration_error": calibration_error(
            said.probabilities[test], torch.from_numpy(y)
        ),
        "nodes": len(test),
    }


def main():
    """Measure every graph, and write means over draws."""
    parser = parser_of_graphs(__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--budget", type=float, default=10)
    arguments = parser.parse_args()
    rows = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    made = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, torch {torch.__version__}",
        "budget": arguments.budget,
        "draws": arguments.draws,
    }
    for name in arguments.graphs.split(","):
        graph = read_graph(name, arguments.own, arguments.data_root)
        draws = [
            measure(graph, name, draw, arguments.budget)
            for draw in range(arguments.draws)
        ]
        means = {key: float(np.mean([d[key] for d in draws])) for key in draws[0]}
        print(name, {key: round(value, 4) for key, value in means.items()})
        rows[name] = means | made
        write_json(arguments.out, rows)


if __name__ == "__main__":
    main()
