"""CPU seconds of what people type first: ``python benchmarks/doors.py SRC [SRC...]``.

Each ``SRC`` is the folder ``src`` of a checkout, and a column of the table: a door's
user and system seconds together, the median of three. Graphs are small CSV files.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DOORS = (
    "--help",
    "run --help",
    "fit --help",
    "study --help",
    "data list",
    "study recipes",
    "run --modle gcn",
    "run --model gnc",
    "data import --nodes nodes.csv --edges edges.csv --label y --out graph{n}",
    "homophily --dataset graph0",
)
ROUNDS, NODES = 3, 60


def cpu_seconds(command: str, source: str, folder: str) -> float:
    """User and system time of one command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "ecg_gnn", *command.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(source).resolve())},
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(source: str) -> list[float]:
    """The median of every door."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [f"n{i},{i % 7},{'ab'[i % 2]}" for i in range(NODES)]
        Path(folder, "nodes.csv").write_text("\n".join(["id,x,y", *rows]))
        rows = [f"n{i},n{(5 * i + 1) % NODES}" for i in range(NODES)]
        Path(folder, "edges.csv").write_text("\n".join(["source,target", *rows]))
        return [
            statistics.median(
                cpu_seconds(door.format(n=n), source, folder) for n in range(ROUNDS)
            )
            for door in DOORS
        ]


if __name__ == "__main__":
    columns = [measure(source) for source in sys.argv[1:]]
    print("| command |", " | ".join(sys.argv[1:]), "|")
    print("| --- " * (len(columns) + 1) + "|")
    for door, *seconds in zip(DOORS, *columns, strict=True):
        shown = door.format(n="")
        print(f"| `{shown}` |", " | ".join(f"{each:.2f}" for each in seconds), "|")
