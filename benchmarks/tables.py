"""Write the tables of the guide and of benchmarks/README.md anew from the records here.

python benchmarks/tables.py           # rewrite what lies between the marks
python benchmarks/tables.py --check   # fail if a table is not what the records say
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.system.canvas import minus

HERE = Path(__file__).parent
PAGES = (
    HERE / "README.md",
    HERE.parent / "docs" / "performance.md",
    HERE.parent / "docs" / "guide" / "predicting.md",
)
# What others can be had, in the order of the table of own graphs.
PEERS = (
    "linear, features",
    "LightGBM, features",
    "LightGBM, + neighbours",
    "LightGBM, + neighbours + labels",
    "AutoGluon",
)
OURS = ("ecg-gnn, best single", "ecg-gnn, ensemble")

# How much faster than plain PyG the benchmark's original DGL code was measured to be on
# the same kind of machine: (dataset, model, width) -> ratio. Of that measurement no
# record was kept; dgl_code.py repeats it.
DGL = {
    ("minesweeper", "gcn", 64): 2.1,
    ("minesweeper", "sage", 64): 1.9,
    ("minesweeper", "gat-sep", 64): 1.8,
    ("minesweeper", "gt-sep", 64): 1.7,
    ("minesweeper", "gcn", 256): 2.0,
    ("minesweeper", "sage", 256): 1.6,
    ("minesweeper", "gat-sep", 256): 1.6,
    ("minesweeper", "gt-sep", 256): 2.2,
    ("tolokers", "gcn", 64): 4.6,
    ("tolokers", "sage", 64): 13,
    ("tolokers", "gat-sep", 64): 3.2,
    ("tolokers", "gt-sep", 64): 4.9,
    ("tolokers", "gcn", 256): 4.8,
    ("tolokers", "sage", 256): 8.0,
    ("tolokers", "gat-sep", 256): 3.3,
    ("tolokers", "gt-sep", 256): 7.2,
}


def load(name: str) -> list[dict[str, Any]]:
    """The rows of a record."""
    record = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = record["rows"]
    return rows


def geometric_mean(values: Iterable[float]) -> float:
    """Of ratios."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def train_h200() -> str:
    """Every cell on the GPU, both precisions."""
    header = ["dataset", "model", "precision", "ours ms", "PyG ms", "PyG/ours"]
    header += ["PyG as it comes/ours", "× estimated floor", "peak MiB", "PyG peak MiB"]
    return table(
        header,
        [
            [
                row["dataset"],
                row["model"],
                row["precision"],
                f"{1e3 * row['ours_s']:.1f}",
                f"{1e3 * row['pyg_s']:.0f}",
                f"{row['speedup']:.1f}",
                f"{row['speedup_default']:.1f}",
                f"{row['floor_ratio']:.2f}",
                f"{row['peak_mb']:.0f}",
                f"{row['pyg_peak_mb']:.0f}",
            ]
            for row in load("train_h200")
        ],
    )


def train_cpu() -> str:
    """Every cell on the CPU beside the ratio to beat."""
    header = ["dataset", "model", "d/L", "ours ms", "PyG ms", "PyG/ours", "PyG/DGL"]
    header += ["× estimated floor", "peak MiB", "PyG peak MiB"]
    rows = load("train_cpu")
    made = [
        [
            row["dataset"],
            row["model"],
            f"{row['hidden']}/{row['layers']}",
            f"{1e3 * row['ours_s']:.0f}",
            f"{1e3 * row['pyg_s']:.0f}",
            f"{row['speedup']:.1f}",
            f"{DGL[row['dataset'], row['model'], row['hidden']]:g}",
            f"{row['floor_ratio']:.1f}",
            f"{row['peak_mb']:.0f}",
            f"{row['pyg_peak_mb']:.0f}",
        ]
        for row in rows
    ]
    mean = geometric_mean(row["speedup"] for row in rows)
    above = sum(
        row["speedup"] > DGL[row["dataset"], row["model"], row["hidden"]]
        for row in rows
    )
    text = f"Geometric mean: {mean:.1f} times as fast as plain PyG; {above} of "
    return f"{table(header, made)}\n\n{text}{len(rows)} cells beat the DGL column."


def knn(name: str) -> Callable[[], str]:
    """The table of one kNN record."""

    def render() -> str:
        header = ["data", "nodes", "ours ms", "GEMM ms", "torch ms", "scikit-learn ms"]
        header += ["faiss ms", "agreement: ours, torch, faiss"]
        keys = ("ours_s", "floor_s", "torch_s", "sklearn_s", "faiss_s")
        shares = ("agreement", "agreement_torch", "agreement_faiss")
        return table(
            header,
            [
                [
                    row["data"],
                    f"{row['nodes']:,}",
                    *(_milliseconds(row[key]) for key in keys),
                    ", ".join(_percent(row[key]) for key in shares),
                ]
                for row in load(name)
            ],
        )

    return render


def _milliseconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{1e3 * value:,.0f}" if value > 0.1 else f"{1e3 * value:.1f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def summary() -> str:
    """The few numbers for the front page."""
    rows = load("train_h200")
    lines = []
    for precision in ("tf32", "bf16"):
        part = [row for row in rows if row["precision"] == precision]
        lines.append(
            [
                f"H200, {precision}",
                "12: three graphs × four models, ECG, d = 512, L = 5, k = 10",
                f"{geometric_mean(row['speedup'] for row in part):.1f}",
                f"{geometric_mean(row['speedup_default'] for row in part):.1f}",
                f"{geometric_mean(row['floor_ratio'] for row in part):.2f}",
            ]
        )
    part = load("train_cpu")
    speed = f"{geometric_mean(row['speedup'] for row in part):.1f}"
    floor = f"{geometric_mean(row['floor_ratio'] for row in part):.2f}"
    cells = f"{len(part)}: two graphs × four models, d = 64 and 256"
    lines.append(["2 CPU cores, fp32", cells, speed, speed, floor])
    header = ["", "cells", "PyG/ours", "PyG as it comes/ours", "time/estimated floor"]
    return table(header, lines)


def mean_and_spread(values: list[float]) -> str:
    """Over splits."""
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}"


def own_graphs() -> str:
    """Test scores on graphs as people have them, means over splits."""
    record = json.loads((HERE / "own" / "cpu.json").read_text(encoding="utf-8"))
    names = list(dict.fromkeys(key.split("/")[0] for key in record))
    lines = []
    for name in names:
        splits = [record[key] for key in record if key.split("/")[0] == name]
        scores: dict[str, list[float]] = {}
        for split in splits:
            for method, result in split["results"].items():
                scores.setdefault(method, []).append(result["test"])
        best = max(mean(values) for values in scores.values())
        cells = []
        for method in (*PEERS, *OURS):
            values = scores.get(method)
            text = "—" if values is None else mean_and_spread(values)
            bold = values is not None and mean(values) > best - 0.05
            cells.append(f"**{text}**" if bold else text)
        rival = max(mean(scores[method]) for method in PEERS if method in scores)
        gain = mean(scores[OURS[1]]) - rival
        took = [split["results"][OURS[1]]["seconds"] for split in splits]
        metric = SCORES[splits[0]["metric"]].label
        label = f"{name} ({len(splits)}, {metric})"
        lines.append([label, *cells, minus(f"{gain:+.1f}"), f"{mean(took):.0f} s"])
    header = ["graph (splits, metric)", *PEERS, *OURS, "gain", "time"]
    return table(header, lines)


def certainty() -> str:
    """Coverage of 90% sets and calibration, means over draws."""
    path = HERE / "own" / "coverage_cpu.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        [
            name,
            f"{100 * row['coverage']:.1f}%",
            f"{row['set_size']:.2f}" if "set_size" in row else "—",
            f"{row['calibration_error']:.3f}" if "calibration_error" in row else "—",
        ]
        for name, row in record.items()
    ]
    return table(["graph", "covered", "classes per set", "calibration error"], lines)


TABLES = {
    "own_graphs": own_graphs,
    "certainty": certainty,
    "summary": summary,
    "train_h200": train_h200,
    "train_cpu": train_cpu,
    "knn_cpu": knn("knn_cpu"),
}


def rewritten(page: str) -> str:
    """A page with every marked table made anew."""
    for name, render in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if begin in page:
            before, rest = page.split(begin)
            page = f"{before}{begin}{render()}\n{end}{rest.split(end)[1]}"
    return page


def main() -> None:
    """Rewrite or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        new = rewritten(page)
        if check and new != page:
            sys.exit(f"{path.name} is not up to date: run python benchmarks/tables.py")
        if not check:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
