"""What the measurements come to: slopes, a table, a figure."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.system import canvas

Row = dict[str, Any]

LEAST = 100_000
"""Smaller graphs measure what a stage costs at all, not how it grows."""


def slope(rows: list[Row], stage: str, key: str, least: int = LEAST) -> float | None:
    """The p of ``nodes ** p`` that fits best; None for fewer than two sizes."""
    points = [
        (math.log(row["nodes"]), math.log(row["stages"][stage][key]))
        for row in rows
        if row["nodes"] >= least and row["stages"][stage].get(key)
    ]
    if len(points) < 2:
        return None
    return float(np.polyfit(*zip(*points, strict=True), 1)[0])


def effort_key(record: dict[str, Any]) -> str:
    """What time is fitted by: cores' seconds on a CPU, where others may be busy."""
    return "seconds" if "host_mb" in record["rows"][0]["stages"]["embed"] else "cpu_s"


def tables(record: dict[str, Any]) -> str:
    """Markdown: times, then peaks, a row for each stage and a column for each size."""
    rows, key = record["rows"], effort_key(record)
    sizes = [f"{row['nodes']:,}" for row in rows]
    times, peaks = [["seconds", *sizes, "slope"]], [["peak GiB", *sizes, "slope"]]
    for stage in rows[0]["stages"]:
        found = [row["stages"][stage] for row in rows]
        times.append([stage, *map(_time, found), _exponent(slope(rows, stage, key))])
        held = [f"{each['peak_mb'] / 2**10:.1f}" for each in found]
        peaks.append([stage, *held, _exponent(slope(rows, stage, "peak_mb"))])
    times.append(["all", *(_number(row["total_s"]) for row in rows), ""])
    peaks.append(["all", *(f"{highest(row) / 2**10:.1f}" for row in rows), ""])
    return f"{markdown(times)}\n\n{markdown(peaks)}"


def highest(row: Row) -> float:
    """The peak of all stages in MiB."""
    return max(stage["peak_mb"] for stage in row["stages"].values())


def reach(record: dict[str, Any], sizes: Sequence[int] = (10**8, 10**9)) -> str:
    """Markdown: what larger graphs would take, by the largest size measured.

    A node's share of every stage is bounded (so many draws, so many edges) but in kNN:
    an exact search compares all pairs, and an index's measured slope goes on. Where
    that is below one, launches and not rows were measured; then its arithmetic counts,
    as many comparisons per row as there are cells: some roots of the number of rows.
    """
    rows, key = record["rows"], effort_key(record)
    lines = [["", *(f"{size:,} nodes" for size in sizes)]]
    total = [0.0] * len(sizes)
    for stage in rows[0]["stages"]:
        last = rows[-1]["stages"][stage][key]
        power = _knn_power(rows, key) if stage == "kNN" else 1.0
        hours = [last * (n / rows[-1]["nodes"]) ** power / 3600 for n in sizes]
        total = [old + new for old, new in zip(total, hours, strict=True)]
        lines.append([f"{stage}, h (power {power:.2f})", *map(_number, hours)])
    lines.append(["all, h", *map(_number, total)])
    per_node = bytes_per_node(rows)
    held = [f"{per_node * n / 2**30:,.0f}" for n in sizes]
    lines.append([f"peak GiB ({per_node:,.0f} bytes per node)", *held])
    return markdown(lines)


def _knn_power(rows: list[Row], key: str) -> float:
    if rows[-1]["knn_recall"] is None:
        return 2.0
    measured = slope(rows, "kNN", key)
    return 1.5 if measured is None or measured < 1 else measured


def bytes_per_node(rows: list[Row]) -> float:
    """How fast peaks grow between the two largest sizes, at most.

    What batches take is bounded, so training by batches is left out.
    """
    small, large = rows[-2:]
    by_batches = "batch" in large["epoch"] and "full-batch" not in large["epoch"]
    grown = max(
        large["stages"][stage]["peak_mb"] - small["stages"][stage]["peak_mb"]
        for stage in large["stages"]
        if not (by_batches and stage == "train")
    )
    return grown * 2**20 / (large["nodes"] - small["nodes"])


def markdown(lines: list[list[str]]) -> str:
    """The first line is the header."""
    lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def notes(record: dict[str, Any]) -> str:
    """What must be known to read the table, one line for each size."""
    rows, versions = record["rows"], record["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [f"{record['machine']}, {record['threads']} threads; {named}."]
    for row in rows:
        recall = row["knn_recall"]
        how = "exact kNN" if recall is None else f"kNN by ivf, recall {recall:.3f}"
        lines.append(
            f"- {row['nodes']:,} nodes, {row['edges']:,} edges, {row['date'][:10]}: "
            f"{row['embedding']}; {how}; {row['epoch']}; test accuracy "
            f"{row['test']:.3f}. "
            f"`{row['command']}`"
        )
    return "\n".join([lines[0], "", *lines[1:]])


def draw(record: dict[str, Any], path: Path) -> None:
    """Seconds and peak memory of every stage against nodes, both axes logarithmic."""
    key = effort_key(record)
    label = "seconds" if key == "seconds" else "core-seconds"
    canvas.draw(path, lambda kind: _stages(kind, record, key, label))


def _stages(kind: Any, record: dict[str, Any], key: str, label: str) -> Any:
    from matplotlib.ticker import EngFormatter

    rows = record["rows"]
    figure = kind(figsize=(7.2, 4.6), layout="constrained")
    both = figure.subplots(1, 2)
    nodes = [row["nodes"] for row in rows]
    scales = ((key, label, 1.0), ("peak_mb", "peak GiB", 2**-10))
    marks = zip(rows[0]["stages"], canvas.PALETTE, "osD^vP", strict=False)
    looks = {stage: {"color": c, "marker": m} for stage, c, m in marks}
    for axes, (key, label, unit) in zip(both, scales, strict=True):
        for stage, look in looks.items():
            values = [unit * row["stages"][stage][key] for row in rows]
            axes.loglog(nodes, values, label=stage, **look)
        steepest = max(_growth(rows, stage, key) for stage in looks)
        axes.set_title(f"{label}: at most nodes{_power(steepest)}")
        axes.set(xlabel="nodes", ylabel=label)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_formatter("{x:g}")
    handles, names = both[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    largest = f"{nodes[-1]:,} nodes on {record['machine'].partition(',')[0]}"
    took, peak = rows[-1]["total_s"], highest(rows[-1]) / 2**10
    figure.suptitle(f"{largest}:\n{_time_in_words(took)}, {peak:.0f} GiB", size=14)
    return figure


def _growth(rows: list[Row], stage: str, key: str) -> float:
    return slope(rows, stage, key) or 0.0


def _power(exponent: float) -> str:
    return f"{exponent:.2f}".translate(str.maketrans("0123456789.", "⁰¹²³⁴⁵⁶⁷⁸⁹·"))


def _time_in_words(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"


def _exponent(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _time(stage: dict[str, float]) -> str:
    """Seconds; in brackets those of cores, if it is they that compute."""
    seconds = _number(stage["seconds"])
    return seconds if "host_mb" in stage else f"{seconds} ({_number(stage['cpu_s'])})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
