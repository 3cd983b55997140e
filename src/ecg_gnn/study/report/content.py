"""Everything that the page shows, from a store."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ecg_gnn._version import __version__
from ecg_gnn.study.figures.bands import Band, bands
from ecg_gnn.study.paper_tables import TABLES, TableDocument, make_table
from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.paper_tables.evolved_graphs import MeasuredGraph, measured_graphs
from ecg_gnn.study.report.details import Detail, cell_detail, failure_detail
from ecg_gnn.study.report.graphs import dataset_detail, find_graph, graph_detail
from ecg_gnn.study.report.leaderboard import (
    Leader,
    leaders,
    published_detail,
    ranking,
)
from ecg_gnn.study.report.sheets import Sheet, failures_sheet, sheet_of
from ecg_gnn.study.report.summary import Answer, Verdict, answers, lede, verdict
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.store import Failure, Store
from ecg_gnn.study.table import STATISTICS
from ecg_gnn.system.checks import InputError

_HEADINGS = {
    "results": "Results",
    "leaderboard": "Leaderboard",
    "embeddings": "Every embedding",
    "hyperparameters": "Hyper-parameters",
    "statistics": "Graph statistics",
}
_CURVE_POINTS = 6_000
"""Points of all curves together: what keeps the page small."""


@dataclass(frozen=True)
class Tile:
    """One dataset and model in the overview."""

    row: Row
    verdict: Verdict
    detail: str


@dataclass(frozen=True, kw_only=True)
class Content:
    """What the page is made of."""

    lede: str
    answers: Sequence[Answer]
    tiles: Mapping[tuple[str, str], Tile]
    """By dataset and model"""
    notes: Mapping[str, str]
    """What must be said of a dataset wherever a number on it is shown"""
    leaders: Sequence[Leader]
    facts: Sequence[tuple[str, str]]
    sheets: Sequence[Sheet]
    data: Mapping[str, Any]
    """For plots and details, as JSON has it"""


def gather(store: Store, recipe: str | None = None) -> Content:
    """Read a store, or one recipe of it.

    Raises:
        InputError: If nothing has been finished, nor failed.
    """
    store.check_recipe(recipe)
    book = _Book(store, recipe)
    if not (book.records or book.failures):
        raise InputError(
            f"'store' {str(store.path)!r} has nothing to report: no unit of it has "
            "finished or failed"
        )
    results = book.documents["results"].rows
    ecg = [row for row in results if row["variant"] == "ecg"]
    return Content(
        lede=lede(ecg),
        answers=answers(ecg, results),
        tiles={
            (row["dataset"], row["model"]): Tile(row, verdict(row), book.cell_id(row))
            for row in ecg
        },
        notes={
            info.name: info.note
            for info in book.selection.datasets
            if info.note and info.name in {row["dataset"] for row in ecg}
        },
        leaders=leaders(book.documents["leaderboard"].rows, book.ranked_id),
        facts=book.facts(),
        sheets=book.sheets(),
        data=book.data(),
    )


class _Book:
    """Tables of a store with an entry of details behind every row."""

    def __init__(self, store: Store, recipe: str | None) -> None:
        self.store, self.recipe = store, recipe
        self.selection = Selection.of(store, recipe=recipe)
        self.records = store.records(recipe=recipe)
        self.failures: list[Failure] = store.failures(recipe=recipe)
        self.documents: dict[str, TableDocument] = {
            name: make_table(name, store, recipe) for name in TABLES
        }
        self.graphs: list[MeasuredGraph] = measured_graphs(store, recipe)
        self.steps: list[list[int]] = []
        self._details_of: dict[str, Callable[[Row], str | None]] = {
            "statistics": self.graph_id,
            "leaderboard": self.ranked_id,
        }
        self.cells = {
            cell.chosen.configuration.id: f"c{place}"
            for place, cell in enumerate(self.selection.cells)
        }

    def cell_id(self, row: Row) -> str:
        """The details of a row of scores."""
        return self.cells[row["configuration"]]

    def ranked_id(self, row: Row) -> str:
        """The details of a row of the leaderboard: a cell's, or a source."""
        if row["kind"] == "ours":
            return self.cell_id(row)
        return f"p{self.documents['leaderboard'].rows.index(row)}"

    def graph_id(self, row: Row) -> str | None:
        """The details of a row of statistics."""
        graph = find_graph(self.graphs, row)
        if graph is not None:
            return f"g{self.graphs.index(graph)}"
        names = [info.name for info in self.store.datasets()]
        return f"d{names.index(row['dataset'])}" if row["dataset"] in names else None

    def facts(self) -> list[tuple[str, str]]:
        """The line under the title."""
        dates = [record.finished for record in self.records]
        dates += [failure.finished for failure in self.failures]
        graphs = {cell.key.dataset for cell in self.selection.cells}
        facts = [("recipe", self.recipe or ", ".join(self.store.recipes()))]
        facts.append(("finished", f"{len(self.records):,}"))
        facts.append(("failed", f"{len(self.failures):,}"))
        if graphs:
            facts.append(("datasets", str(len(graphs))))
        facts.append(("last", max(dates)[:10]))
        made = [record.result.provenance for record in self.records]
        machines = dict.fromkeys(each.get("device_name") for each in made)
        if named := ", ".join(filter(None, machines)):
            facts.append(("on", named))
        return [*facts, ("ecg-gnn", __version__)]

    def sheets(self) -> list[Sheet]:
        """All tables that have rows."""
        found = []
        for name, heading in _HEADINGS.items():
            detail = self._details_of.get(name, self.cell_id)
            found.append(sheet_of(self.documents[name], heading, detail))
        ids = [f"f{place}" for place in range(len(self.failures))]
        found.append(failures_sheet(self.failures, ids))
        return [sheet for sheet in found if sheet.lines]

    def data(self) -> dict[str, Any]:
        """Plots and details."""
        return {
            "details": self.details(),
            "effects": {
                name: [
                    self._effect(row)
                    for row in self.documents[name].rows
                    if row["variant"] == "ecg"
                ]
                for name in ("results", "embeddings")
            },
            "curves": self._curves(),
            "steps": self.steps,
            "homophily": self._homophily(),
            "leaderboard": ranking(self.documents["leaderboard"].rows, self.ranked_id),
        }

    def details(self) -> dict[str, Detail]:
        """What every click opens, by id."""
        found: dict[str, Detail] = {}
        for cell in self.selection.cells:
            found[self.cells[cell.chosen.configuration.id]] = self._cell(cell)
        for place, graph in enumerate(self.graphs):
            found[f"g{place}"] = graph_detail(graph)
        for place, info in enumerate(self.store.datasets()):
            found[f"d{place}"] = dataset_detail(info)
        for place, failure in enumerate(self.failures):
            found[f"f{place}"] = failure_detail(failure)
        for row in self.documents["leaderboard"].rows:
            if row["kind"] == "published":
                found[self.ranked_id(row)] = published_detail(row)
        return found

    def _cell(self, cell: Cell) -> Detail:
        rows = {}
        for name in ("results", "embeddings"):
            for row in self.documents[name].rows:
                if row["configuration"] == cell.chosen.configuration.id:
                    rows[name] = row
        return cell_detail(self.selection, cell, rows)

    def _effect(self, row: Row) -> dict[str, Any]:
        effect: dict[str, Any] = {
            "dataset": row["dataset"],
            "model": row["model"],
            "label": row["label"],
            "detail": self.cell_id(row),
        }
        for other in ("baseline", "identity"):
            keys = [f"minus_{other}{end}" for end in ("", "_ci_low", "_ci_high")]
            known = row[keys[0]] is not None
            effect[other] = [_rounded(row[key]) for key in keys] if known else None
        return effect

    def _curves(self) -> list[dict[str, Any]]:
        """Every dataset and model, with the curves of its cells."""
        points = max(24, min(100, _CURVE_POINTS // max(1, len(self.cells))))
        groups = []
        for cells in self.selection.models():
            best = best_ecg(cells)
            lines = []
            for cell in cells:
                found = bands(self.store, cell, points)
                if found:
                    lines.append(
                        {
                            "detail": self.cells[cell.chosen.configuration.id],
                            "label": cell.label,
                            "variant": cell.key.variant,
                            "best": cell is best,
                            "shown": cell is best
                            or cell.key.variant in ("baseline", "identity"),
                            "steps": self._steps(found["test"].steps.tolist()),
                            **{name: _band(name, band) for name, band in found.items()},
                        }
                    )
            if lines:
                key = cells[0].key
                names = {"dataset": key.dataset, "model": key.model_label}
                groups.append({**names, "lines": lines})
        return groups

    def _steps(self, steps: list[int]) -> int:
        """The place of these steps among all; most curves share theirs."""
        if steps not in self.steps:
            self.steps.append(steps)
        return self.steps.index(steps)

    def _homophily(self) -> list[dict[str, Any]]:
        """Every dataset with its graphs and their statistics."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in self.documents["statistics"].rows:
            values = {key: _rounded(row[key]) for key in STATISTICS}
            paper = {key: row[f"paper_{key}"] for key in STATISTICS}
            found.setdefault(row["dataset"], []).append(
                {
                    "label": row["graph"],
                    "input": row["embedding"] is None,
                    "detail": self.graph_id(row),
                    "values": values,
                    "paper": paper,
                }
            )
        return [{"dataset": name, "graphs": graphs} for name, graphs in found.items()]


def _band(name: str, band: Band) -> list[list[float | None]]:
    scale, digits = (1, 3) if name == "loss" else (100, 2)
    return [
        [_rounded(scale * float(value), digits) for value in series]
        for series in (band.mean, band.spread)
    ]


def _rounded(value: float | None, digits: int = 4) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return round(value, digits)
