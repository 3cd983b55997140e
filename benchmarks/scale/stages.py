"""Every stage at every size: seconds and peak memory of each.

    python benchmarks/scale/stages.py --json benchmarks/scale/scale_cpu.json
    python benchmarks/scale/stages.py --device cuda --json FILE

Graphs are `csbm` with ten undirected edges per node (twenty as they are stored, both
ways) and 64 features. They are generated, embedded by an MLP, evolved (k = 10), trained
on for an epoch by ECG-SAGE, and all nodes are classified and scored. On a CPU an epoch
is batches with sampled neighbours in both graphs; on a GPU it is one full-batch step,
or batches where that does not fit. Every size has a process of its own, and the results
are written after each. `plot.py` makes figures and tables of them.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from one_size import Settings, measure_size

from ecg_gnn.system.files import write_json

SIZES = (10_000, 100_000, 1_000_000)
PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "faiss-cpu")


def main() -> None:
    """Measure all sizes, each in a process of its own; or one, as such a process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default=",".join(map(str, SIZES)))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--knn", choices=["auto", "exact", "ivf"], default="auto")
    parser.add_argument("--batch-size", type=int, default=Settings.batch_size)
    parser.add_argument("--fanout", type=int, default=Settings.fanout)
    parser.add_argument("--embed-width", type=int, default=Settings.embed_width)
    parser.add_argument("--embed-epochs", type=int, default=Settings.embed_epochs)
    parser.add_argument("--within", type=float, help="seconds for all sizes together")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        settings = Settings(
            nodes=int(given.nodes),
            device=given.device,
            knn=given.knn,
            batch_size=given.batch_size,
            fanout=given.fanout,
            embed_width=given.embed_width,
            embed_epochs=given.embed_epochs,
        )
        write_json(given.json, measure_size(settings))
        return
    measure_all([int(size) for size in given.nodes.split(",")], given)


def measure_all(sizes: list[int], given: argparse.Namespace) -> None:
    """Measure sizes and add them to what the file has of this device already."""
    started = time.monotonic()
    for nodes in sizes:
        left = None
        if given.within is not None:
            left = given.within - (time.monotonic() - started)
            print(f"{left:.0f} s left", flush=True)
        try:
            row = measure_apart(nodes, given, left)
        except subprocess.TimeoutExpired:
            sys.exit(f"no time is left for {nodes:,} nodes")
        made_on = machine(given.device)
        rows = {each["nodes"]: each for each in earlier(given.json, made_on)}
        rows[nodes] = row
        write_json(
            given.json, made_on | {"rows": [rows[size] for size in sorted(rows)]}
        )
        describe(row)


def measure_apart(
    nodes: int, given: argparse.Namespace, left: float | None
) -> dict[str, Any]:
    """One size in a fresh process: an earlier size's peak would hide a later one's."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "row.json"
        options = {
            "--nodes": nodes,
            "--device": given.device,
            "--json": found,
            "--knn": given.knn,
            "--batch-size": given.batch_size,
            "--fanout": given.fanout,
            "--embed-width": given.embed_width,
            "--embed-epochs": given.embed_epochs,
        }
        words = [str(word) for pair in options.items() for word in pair]
        subprocess.run(
            [sys.executable, __file__, "--one", *words], check=True, timeout=left
        )
        row: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return row | {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(given),
    }


def command(given: argparse.Namespace) -> str:
    """What was asked for, wherever the results went."""
    words = ["FILE" if word == str(given.json) else word for word in sys.argv[1:]]
    return " ".join(["python benchmarks/scale/stages.py", *words])


def earlier(path: Path, made_on: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that the file has already, unless they are of another machine."""
    if not path.is_file():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = record["rows"]
    return rows if record["machine"] == made_on["machine"] else []


def machine(device: str) -> dict[str, Any]:
    """What it was measured on and with."""
    name = torch.cuda.get_device_name() if device == "cuda" else processor()
    return {
        "machine": name,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
    }


def processor() -> str:
    """The name of the CPU, where the system says it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.split(":")[1] for line in lines if line.startswith("model name")]
    return names[0].strip() if names else platform.processor()


def installed(package: str) -> str | None:
    """Its version."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe(row: dict[str, Any]) -> None:
    """A line per stage."""
    print(f"{row['nodes']:,} nodes, {row['edges']:,} edges, {row['epoch']}")
    for name, stage in row["stages"].items():
        print(f"  {name:9} {stage['seconds']:9.2f} s {stage['peak_mb']:9.0f} MiB")
    print(f"  test {row['test']:.4f}, {row['total_s']:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
