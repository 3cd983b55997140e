"""The report of a study: one HTML file that reads nothing else, not even a font."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from ecg_gnn._version import __version__
from ecg_gnn.config.identity import LABELS
from ecg_gnn.study.store import Failure, Store
from ecg_gnn.study.table import configuration_name, model_name
from ecg_gnn.system.canvas import COLOURS, svg_text
from ecg_gnn.system.checks import InputError, MissingExtraError, metric_label
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.figures import FIGURES, leaderboard
from ecg_gnn_lab.report import details
from ecg_gnn_lab.report.summary import VERDICTS, answers, lede, verdict
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables import document as doc
from ecg_gnn_lab.tables.document import Column, Row, TableDocument
from ecg_gnn_lab.tables.ranking import best_published, boards
from ecg_gnn_lab.tables.scores import SURE, compared_with
from ecg_gnn_lab.tables.statistics import graph_rows

_HEADINGS = {
    "results": "Results",
    "leaderboard": "Leaderboard",
    "embeddings": "Every embedding",
    "hyperparameters": "Hyper-parameters",
    "statistics": "Graph statistics",
}
EMPTY = ("", "—", "undefined")
"""Texts of a table that say nothing."""
# Colours of the figures as variables of the page.
_THEMED = {
    "#000000": "strong-line",
    "#4c4c4c": "soft",
    "#808080": "soft",
    **{colour.lower(): variant for variant, colour in COLOURS.items()},
}


class Sheet(NamedTuple):
    """A table of the page; every row opens details."""

    heading: str
    document: TableDocument
    details: Sequence[str]
    """The id of every row's details"""


def write_report(store: Store, path: Path, recipe: str | None = None) -> None:
    """Write the report of a store, or of one recipe; the file is whole or not there."""
    write_text(path, render_report(gather(StudyTables(store, recipe))))


def render_report(content: SimpleNamespace) -> str:
    """The page as text."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report", "writing a report") from None
    script = f'"use strict";\n(() => {{\n{_read("report.js")}\n}})();\n'
    digest = hashlib.sha256(script.encode()).digest()
    details = json.dumps(
        content.details, allow_nan=False, ensure_ascii=False, separators=(",", ":")
    )
    for character in "<\u2028\u2029":  # JSON must not end the element it stands in
        details = details.replace(character, f"\\u{ord(character):04x}")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment.from_string(_read("page.html")).render(
        content=content,
        style=_read("style.css"),
        script=script,
        # The page's policy lets this script run, and nothing slipped in.
        script_hash=f"sha256-{base64.b64encode(digest).decode()}",
        details=details,
        verdict=verdict,
        verdicts=VERDICTS,
        sure=SURE,
        rivals=compared_with,
        empty=EMPTY,
        is_number=_is_number,
        score=doc.score_text,
        signed=doc.signed_text,
        within_spread=doc.within_spread,
        metric_label=metric_label,
    )


def _is_number(column: Column, rows: Sequence[Row]) -> bool:
    values = [row[column.key] for row in rows if row[column.key] is not None]
    return all(isinstance(value, int | float) for value in values)


def _read(name: str) -> str:
    return files("ecg_gnn_lab.report").joinpath(name).read_text(encoding="utf-8")


def gather(tables: StudyTables) -> SimpleNamespace:
    """Everything that the page shows of a store, or of one recipe of it."""
    store, recipe = tables.store, tables.recipe
    store.check_recipe(recipe)
    records, failures = store.records(recipe=recipe), store.failures(recipe=recipe)
    if not (records or failures):
        raise InputError(
            f"'store' {str(store.path)!r} has nothing to report: no unit of it has "
            "finished or failed"
        )
    datasets = {cell.key.dataset for cell in tables.selection.cells}
    machines = dict.fromkeys(r.result.provenance.get("device_name") for r in records)
    dates = [r.finished for r in records] + [f.finished for f in failures]
    facts = {
        "recipe": recipe or ", ".join(store.recipes()),
        "finished": f"{len(records):,}",
        "failed": f"{len(failures):,}",
        "datasets": str(len(datasets) or ""),
        "last": max(dates)[:10],
        "on": ", ".join(filter(None, machines)),
        "ecg-gnn": __version__,
    }
    results = tables["results"].rows
    ecg = [row for row in results if row["variant"] == "ecg"]
    shown = {row["dataset"] for row in ecg}
    infos = tables.selection.datasets
    paints = {name: paint for name, (paint, _) in FIGURES.items()}
    paints["leaderboard"] = leaderboard
    return SimpleNamespace(
        lede=lede(ecg),
        answers=answers(ecg, results, tables["embeddings"].rows),
        tiles={(row["dataset"], row["model"]): row for row in ecg},
        # What must be said of a dataset wherever a number on it is shown.
        notes={i.name: i.note for i in infos if i.note and i.name in shown},
        leaders=[_leader(board) for board in boards(tables["leaderboard"].rows)],
        facts={name: text for name, text in facts.items() if text},
        sheets=_sheets(tables, failures),
        pictures={
            name: inline(svg_text(painted), name)
            for name, paint in paints.items()
            if (painted := paint(tables)) is not None
        },
        details=_details(tables, failures),
    )


def _leader(board: Sequence[Row]) -> dict[str, Any]:
    """A dataset's card: the row validation chose of ours, and the best of others.

    Published models have no labels as input, so our best with them stands apart.
    """
    ours = [row for row in board if row["kind"] == "ours"]
    most = max(row["units"] for row in ours)  # a row of one split is no best
    labelled = [
        row for row in ours if LABELS in (row["options"] or "") and row["units"] == most
    ]
    names, published = best_published(board)
    return {
        "ours": next(row for row in board if row["best_on_validation"]),
        "published": published,
        "names": names,
        "with_labels": max(labelled, key=itemgetter("val_mean"), default=None),
    }


def _sheets(tables: StudyTables, failures: Sequence[Failure]) -> list[Sheet]:
    """All tables that have rows, without columns that say nothing.

    Of p it is bold print that tells, and the details.
    """
    documents = [(heading, tables[name]) for name, heading in _HEADINGS.items()]
    sheets = []
    for heading, document in (*documents, ("Failures", _failures(failures))):
        rows = document.rows
        said = [
            column
            for column in document.columns
            if not column.key.endswith("_p_holm")
            and any(column.text(row) not in EMPTY for row in rows)
        ]
        places = [f"{document.name}-{place}" for place in range(len(rows))]
        ids = [
            row.get("configuration") or at for row, at in zip(rows, places, strict=True)
        ]
        sheets.append(Sheet(heading, replace(document, columns=said), ids))
    return [sheet for sheet in sheets if sheet.details]


def _failures(failures: Sequence[Failure]) -> TableDocument:
    """What could not be finished, and the last line of its error."""
    rows = [
        {
            "dataset": (at := failure.configuration).dataset,
            "model": model_name(at.backbone, at.model),
            "variant": configuration_name(at),
            "split": failure.split,
            "seed": failure.seed,
            "kind": failure.kind,
            "error": (failure.error.strip().splitlines() or [""])[-1][:200],
            "when": failure.finished[:16].replace("T", " "),
        }
        for failure in failures
    ]
    return TableDocument(
        name="failures",
        title="Failures",
        columns=[Column(name, name) for name in (rows[0] if rows else ())],
        rows=rows,
        notes=[],
        rule_between=(),
    )


def _details(
    tables: StudyTables, failures: Sequence[Failure]
) -> dict[str, details.Detail]:
    """What every click opens, by id."""
    entries: dict[str, details.Detail] = {}
    for cell in tables.selection.cells:
        id_ = cell.chosen.configuration.id
        rows = {
            name: row
            for name in ("results", "embeddings")
            for row in tables[name].rows
            if row["configuration"] == id_
        }
        entries[id_] = details.cell_detail(tables.selection, cell, rows)
    for place, (_, graph) in enumerate(graph_rows(tables)):
        entries[f"statistics-{place}"] = details.graph_detail(graph)
    for place, failure in enumerate(failures):
        entries[f"failures-{place}"] = details.failure_detail(failure)
    for place, row in enumerate(tables["leaderboard"].rows):
        if row["kind"] == "published":
            entries[f"leaderboard-{place}"] = details.published_detail(row)
    return entries


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
