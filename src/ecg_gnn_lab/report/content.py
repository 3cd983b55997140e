"""Everything that the page shows, from a store."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ecg_gnn._version import __version__
from ecg_gnn.config.tags import LABELS
from ecg_gnn.system.canvas import COLOURS, Paint, svg_text
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.metric_names import metric_label
from ecg_gnn_lab.figures import FIGURES, leaderboard
from ecg_gnn_lab.report.details import (
    Detail,
    cell_detail,
    dataset_detail,
    failure_detail,
    find_graph,
    graph_detail,
    published_detail,
)
from ecg_gnn_lab.report.sheets import Sheet, failures_table, sheet_of
from ecg_gnn_lab.report.summary import Answer, Verdict, answers, lede, verdict
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import Row, score_text, signed_text
from ecg_gnn_lab.tables.evolved_graphs import measured_graphs
from ecg_gnn_lab.tables.leaderboard import best_published, boards

_HEADINGS = {
    "results": "Results",
    "leaderboard": "Leaderboard",
    "embeddings": "Every embedding",
    "hyperparameters": "Hyper-parameters",
    "statistics": "Graph statistics",
}
_PICTURES: dict[str, Callable[[StudyTables], Paint | None]] = {
    **{name: figure.paint for name, figure in FIGURES.items()},
    "leaderboard": leaderboard,
}

_THEMED = {
    "#000000": "strong-line",
    "#4c4c4c": "soft",
    "#808080": "soft",
    **{colour.lower(): variant for variant, colour in COLOURS.items()},
}
"""Colours of the figures as variables of the page"""


@dataclass(frozen=True)
class Tile:
    """One dataset and model in the overview."""

    row: Row
    verdict: Verdict
    detail: str


@dataclass(frozen=True, kw_only=True)
class Side:
    """One result of a card: what it is called, its number, what it opens."""

    name: str
    score: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Leader:
    """A card per dataset: what validation chose of ours, and the best of others."""

    dataset: str
    metric: str
    ours: Side
    published: Side | None
    gap: str
    """The difference in words"""
    ahead: bool


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
    pictures: Mapping[str, str]
    """SVG elements by the figure's name; none where there is nothing to draw"""
    details: Mapping[str, Detail]
    """What every click opens, by id"""


def gather(tables: StudyTables) -> Content:
    """Read a store, or one recipe of it.

    Raises:
        InputError: If nothing has been finished, nor failed.
    """
    store = tables.store
    store.check_recipe(tables.recipe)
    book = _Book(tables)
    if not (book.records or book.failures):
        raise InputError(
            f"'store' {str(store.path)!r} has nothing to report: no unit of it has "
            "finished or failed"
        )
    results = tables["results"].rows
    ecg = [row for row in results if row["variant"] == "ecg"]
    shown = {row["dataset"] for row in ecg}
    return Content(
        lede=lede(ecg),
        answers=answers(ecg, results),
        tiles={
            (row["dataset"], row["model"]): Tile(row, verdict(row), book.cell_id(row))
            for row in ecg
        },
        notes={
            info.name: info.note
            for info in tables.selection.datasets
            if info.note and info.name in shown
        },
        leaders=[
            _leader(board, book.ranked_id)
            for board in boards(tables["leaderboard"].rows)
        ],
        facts=book.facts(),
        sheets=book.sheets(),
        pictures={
            name: inline(svg_text(painted), name)
            for name, paint in _PICTURES.items()
            if (painted := paint(tables)) is not None
        },
        details=book.details(),
    )


def inline(svg: str, name: str) -> str:
    """A file's ``svg`` element alone, with ids that no other picture has.

    Metadata goes, which names other places, and so do styles for all elements; colours
    follow the page's theme. Names in a picture's texts are escaped: what begins with
    ``<`` is a tag.
    """
    element = svg[svg.index("<svg") :].strip()
    element = re.sub(r"(?s)<metadata>.*?</metadata>|<style.*?</style>", "", element)

    def own(tag: re.Match[str]) -> str:
        unused = r' xmlns(:xlink)?="[^"]*"| font-family: [^;"]*;?|(?<=<g) id="[^"]*"'
        tidy = re.sub(unused, "", tag[0]).replace("xlink:href", "href")
        for colour, variable in _THEMED.items():
            tidy = tidy.replace(colour, f"var(--{variable})")
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", tidy)

    return re.sub(r"\n\s*", "\n", re.sub(r"<[^>]*>", own, element))


class _Book:
    """Tables of a store with an entry of details behind every row."""

    def __init__(self, tables: StudyTables) -> None:
        store, recipe = tables.store, tables.recipe
        self.tables, self.selection = tables, tables.selection
        self.records = store.records(recipe=recipe)
        self.failures = store.failures(recipe=recipe)
        self.datasets = store.datasets()
        self.graphs = measured_graphs(store, recipe)
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
        return f"p{self.tables['leaderboard'].rows.index(row)}"

    def graph_id(self, row: Row) -> str | None:
        """The details of a row of statistics."""
        graph = find_graph(self.graphs, row)
        if graph is not None:
            return f"g{self.graphs.index(graph)}"
        names = [info.name for info in self.datasets]
        return f"d{names.index(row['dataset'])}" if row["dataset"] in names else None

    def facts(self) -> list[tuple[str, str]]:
        """The line under the title."""
        store, recipe = self.tables.store, self.tables.recipe
        dates = [record.finished for record in self.records]
        dates += [failure.finished for failure in self.failures]
        graphs = {cell.key.dataset for cell in self.selection.cells}
        facts = [("recipe", recipe or ", ".join(store.recipes()))]
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
        details: dict[str, Callable[[Row], str | None]] = {
            "statistics": self.graph_id,
            "leaderboard": self.ranked_id,
        }
        found = [
            sheet_of(self.tables[name], heading, details.get(name, self.cell_id))
            for name, heading in _HEADINGS.items()
        ]
        failed = failures_table(self.failures)
        found.append(sheet_of(failed, "Failures", lambda row: str(row["detail"])))
        return [sheet for sheet in found if sheet.lines]

    def details(self) -> dict[str, Detail]:
        """What every click opens, by id."""
        found: dict[str, Detail] = {}
        for cell in self.selection.cells:
            id_ = cell.chosen.configuration.id
            rows = {
                name: row
                for name in ("results", "embeddings")
                for row in self.tables[name].rows
                if row["configuration"] == id_
            }
            found[self.cells[id_]] = cell_detail(self.selection, cell, rows)
        for place, graph in enumerate(self.graphs):
            found[f"g{place}"] = graph_detail(graph)
        for place, info in enumerate(self.datasets):
            found[f"d{place}"] = dataset_detail(info)
        for place, failure in enumerate(self.failures):
            found[f"f{place}"] = failure_detail(failure)
        for row in self.tables["leaderboard"].rows:
            if row["kind"] == "published":
                found[self.ranked_id(row)] = published_detail(row)
        return found


def _leader(board: Sequence[Row], detail: Callable[[Row], str]) -> Leader:
    ours = next(row for row in board if row["best_on_validation"])
    names, row = best_published(board)
    published = None
    if row is not None:
        score = score_text(row, "published")
        published = Side(name=" and ".join(names), score=score, detail=detail(row))
    difference = ours["best_published_difference"]
    return Leader(
        dataset=ours["dataset"],
        metric=metric_label(ours["metric"]),
        ours=Side(name=ours["model"], score=score_text(ours), detail=detail(ours)),
        published=published,
        gap=". ".join([_gap(ours, names), *_without_labels(board, ours)]),
        ahead=difference is not None and difference >= 0,
    )


def _gap(ours: Row, names: Sequence[str]) -> str:
    splits = f"{ours['splits']} split{'s' * (ours['splits'] != 1)}"
    difference = ours["best_published_difference"]
    if difference is not None:
        return f"{signed_text(difference)} points on {splits}"
    told = " with these features" if names else ""
    return f"{splits}, nothing published{told}"


def _without_labels(board: Sequence[Row], ours: Row) -> list[str]:
    """The best that takes no labels as input, where the best of all does."""
    if LABELS not in (ours["options"] or ""):
        return []
    rivals = [
        row
        for row in board
        if row["units"] == ours["units"] and LABELS not in (row["options"] or "")
    ]
    if not rivals:
        return []
    best = max(rivals, key=lambda row: row["val_mean"])
    return [f"Without labels as input: {best['model']}, {score_text(best)}"]
