"""Test scores over the share of nodes with a known label: ECG beside its rivals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from quoting import tables

from ecg_gnn.study import Store
from ecg_gnn.system import canvas
from ecg_gnn_lab.report.summary import verdict
from ecg_gnn_lab.tables.document import Row
from ecg_gnn_lab.tables.scores import RIVALS, compared_with

VARIANTS = ("baseline", "identity", "embedding", "random", "ecg")
"""In the order in which they are drawn: ECG last, on top."""
_NAMES = {"baseline": "plain", "ecg": "ECG"}
_RATES = (0.01, 0.05, 0.1, 0.25, 0.5)
_OFFICIAL = 0.5  # the share of nodes that train in the official splits
_APART = 1.09  # between variants at one rate, or they would hide each other


class Point(NamedTuple):
    """One variant at one share of labels, in percent; what is missing has none."""

    variant: str
    rate: float
    mean: float
    std: float


Panels = dict[tuple[str, str], list[Point]]
"""Points by dataset and model."""


def draw_label_rates(path: Path, source: str, records: Path) -> None:
    """A panel per dataset (lines) and model (columns)."""
    with Store.open(records) as store:
        rows = tables(store)["results"].rows
        panels, title = panels_of(store), title_of(rows)
    datasets, models = (list(dict.fromkeys(each)) for each in zip(*panels, strict=True))

    def paint(kind: Any) -> Any:
        size = 0.7 + 2.1 * max(len(models), 2), 1.3 + 1.9 * len(datasets)
        figure = kind(figsize=size, layout="constrained")
        options = {"squeeze": False, "sharex": True, "sharey": "row"}
        grid = figure.subplots(len(datasets), len(models), **options)
        for dataset, line in zip(datasets, grid, strict=True):
            for model, axes in zip(models, line, strict=True):
                _draw_panel(axes, panels.get((dataset, model), []))
                axes.set_title(f"{dataset}\n{model}", fontsize=9)
            line[0].set_ylabel("test score (%)")
        grid[-1, 0].set_xlabel("nodes with a known label")
        handles, names = _key(grid[0, 0])
        figure.legend(handles, names, loc="outside lower center", ncols=3)
        figure.suptitle(title)
        return figure

    canvas.draw(path, paint, source=source)


def panels_of(store: Store) -> Panels:
    """Every model's plain network, chosen ECG and controls, rate by rate.

    A variant with fewer trainings than others at its rate is not finished: left out.
    """
    cells = {c.chosen.configuration.id: c for c in tables(store).selection.cells}
    found = [
        (cells[row["configuration"]].key, row) for row in tables(store)["results"].rows
    ]
    most: dict[Any, int] = {}
    for key, row in found:
        most[key.model_key()] = max(most.get(key.model_key(), 0), row["units"])
    panels: Panels = {}
    for key, row in found:
        if row["units"] == most[key.model_key()]:
            rate, spread = key.label_rate or _OFFICIAL, row["test_std"] or 0.0
            point = Point(key.variant, rate, row["test_mean"], spread)
            panels.setdefault((key.dataset, key.model_label), []).append(point)
    return panels


def title_of(rows: Sequence[Row]) -> str:
    """The one thing to see: how often the evolved edges have a gain of their own."""
    ecg = [row for row in rows if row["variant"] == "ecg"]
    whole = [row for row in ecg if len(compared_with([row])) == len(RIVALS)]
    if not whole:
        return "Test score over the share of labels"
    edges = sum(verdict(row) == "edges" for row in whole)
    count = f"in {edges} of {len(whole)} comparisons"
    return f"ECG is above plain, identity\nand embedding {count}"


def _draw_panel(axes: Any, points: Sequence[Point]) -> None:
    for place, variant in enumerate(VARIANTS):
        line = sorted(p for p in points if p.variant == variant)
        apart = _APART ** (place - len(VARIANTS) // 2)
        rates = [point.rate * apart for point in line]
        means, spreads = [p.mean for p in line], [p.std for p in line]
        style = {"lw": 1.2, "elinewidth": 0.8, **canvas.look(variant)}
        axes.errorbar(rates, means, spreads, **style)
    axes.set_xscale("log")
    axes.set_xticks(_RATES, [f"{rate:.0%}" for rate in _RATES], fontsize=8)
    axes.minorticks_off()
    axes.set_xlim(_RATES[0] / 1.5, _RATES[-1] * 1.5)


def _key(axes: Any) -> tuple[list[Any], list[str]]:
    names = [_NAMES.get(variant, variant) for variant in VARIANTS]
    looks = map(canvas.look, VARIANTS)
    return [axes.plot([], [], lw=1.2, **look)[0] for look in looks], names
