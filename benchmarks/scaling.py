"""How the time of a step grows with the graph, full batch, on one device.

    python benchmarks/scaling.py --json benchmarks/scaling_h200.json
    python benchmarks/scaling.py --plot benchmarks/scaling_h200.json

Random graphs of ten edges per node, 64 features, width 256, two layers: a step with its
evaluation, and its peak memory. Edges are random, so that nothing lies close together.
"""

import argparse
import json
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, NetworkSpec, build_network
from ecg_gnn.system import canvas
from ecg_gnn.system.files import write_json
from ecg_gnn.train import LoopSettings, Task, Training, computing_in

SIZES = (10_000, 30_000, 100_000, 200_000, 300_000, 1_000_000)
MODELS = ("gcn", "sage", "gat-sep", "gt-sep")
DEGREE, FEATURES, HIDDEN, LAYERS, CLASSES = 10, 64, 256, 2, 5


def make_task(num_nodes: int, device: torch.device) -> Task:
    """A random graph; labels that mean nothing."""
    edges = torch.randint(num_nodes, (2, DEGREE * num_nodes), device=device)
    order = torch.randperm(num_nodes, device=device)
    train, val, test = order.chunk(3)
    return Task(
        x=torch.randn(num_nodes, FEATURES, device=device),
        y=torch.randint(CLASSES, (num_nodes,), device=device),
        graphs=[GraphInput(Adjacency.from_edge_index(edges, num_nodes))],
        train_index=train,
        val_index=val,
        test_index=test,
        metric="accuracy",
    )


def measure(model: str, num_nodes: int, precision: str, device: torch.device) -> dict:
    """Seconds and peak memory of a step."""
    torch.manual_seed(0)
    task = make_task(num_nodes, device)
    network = build_network(
        NetworkSpec(
            backbone="benchmark",
            model=model,
            in_channels=FEATURES,
            hidden=HIDDEN,
            num_classes=CLASSES,
            layers=LAYERS,
            num_graphs=1,
            dropout=0.2,
        )
    ).to(device)
    torch.cuda.reset_peak_memory_stats(device)
    with computing_in(precision, device):
        config = LoopSettings(steps=1000, precision=precision)
        training = Training(network, task, config, seed=0)
        for _ in range(5):
            training.step()
        torch.cuda.synchronize(device)
        started = time.perf_counter()
        for _ in range(10):
            training.step()
        torch.cuda.synchronize(device)
    seconds = (time.perf_counter() - started) / 10
    return {
        "model": model,
        "nodes": num_nodes,
        "edges": DEGREE * num_nodes,
        "precision": precision,
        "step_s": seconds,
        "peak_mb": torch.cuda.max_memory_allocated(device) / 2**20,
    }


def sweep(precision: str, path: Path | None) -> None:
    """Every model and size; one table."""
    device = torch.device("cuda")
    rows = []
    for model in MODELS:
        for num_nodes in SIZES:
            row = measure(model, num_nodes, precision, device)
            rows.append(row)
            per = 1e9 * row["step_s"] / (row["nodes"] + row["edges"])
            print(
                f"{model:8} {num_nodes:9,} nodes  {1e3 * row['step_s']:8.2f} ms  "
                f"{per:6.2f} ns per node and edge  {row['peak_mb']:8.0f} MiB",
                flush=True,
            )
            torch.cuda.empty_cache()
    record = {
        "machine": torch.cuda.get_device_name(),
        "date": datetime.now(UTC).date().isoformat(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "command": "python benchmarks/scaling.py --json ...",
        "rows": rows,
    }
    if path is not None:
        write_json(path, record)


def plot(path: Path) -> None:
    """Time over nodes and edges, beside a straight line."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    canvas.draw(path.with_suffix(".png"), lambda kind: _paint(kind, record))


def _paint(kind: Any, record: dict[str, Any]) -> Any:
    from matplotlib.ticker import EngFormatter

    figure = kind(figsize=(6, 4.6), layout="constrained")
    axes = figure.subplots()
    for model, colour, marker in zip(MODELS, canvas.PALETTE, "osD^vP", strict=False):
        rows = [row for row in record["rows"] if row["model"] == model]
        sizes = [row["nodes"] + row["edges"] for row in rows]
        times = [1e3 * row["step_s"] for row in rows]
        axes.loglog(sizes, times, color=colour, marker=marker, label=model)
    first, last = sizes[0], sizes[-1]
    base = 1e3 * record["rows"][0]["step_s"]
    line = [base, base * last / first]
    axes.loglog([first, last], line, label="in proportion", **canvas.DASHES)
    axes.set(xlabel="nodes + edges", ylabel="ms per step with evaluation")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(f"full batch, width {HIDDEN}, {record['machine']}")
    figure.legend(loc="outside lower center", ncols=len(MODELS) + 1)
    figure.suptitle("Time grows with nodes and edges")
    return figure


def main() -> None:
    """Measure, or plot what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if given.plot is not None:
        plot(given.plot)
    else:
        sweep(given.precision, given.json)


if __name__ == "__main__":
    main()
