"""The report of a study: one HTML file that reads nothing else, not even a font."""

import base64
import hashlib
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

from ecg_gnn._version import __version__
from ecg_gnn.study.store import Store
from ecg_gnn.system.canvas import svg_text
from ecg_gnn.system.checks import InputError, MissingExtraError, metric_label
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.figures import FIGURES
from ecg_gnn_lab.report import summary
from ecg_gnn_lab.report.details import cell_detail
from ecg_gnn_lab.tables import StudyTables, document, scores
from ecg_gnn_lab.tables.document import TableDocument
from ecg_gnn_lab.tables.ranking import BEST, boards

_TABLES = ("results", "leaderboard", "embeddings", "hyperparameters", "statistics")
EMPTY = ("", "—", "undefined")
"""Texts of a table that say nothing."""


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
    details = json.dumps(content.details, allow_nan=False, separators=(",", ":"))
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment.from_string(_read("page.html")).render(
        content=content,
        style=_read("style.css"),
        script=script,
        # The page's policy lets this script run, and nothing slipped in.
        script_hash=f"sha256-{base64.b64encode(digest).decode()}",
        details=details.replace("<", "\\u003c"),  # or it would end its element
        empty=EMPTY,
        best=BEST,
        doc=document,
        scores=scores,
        summary=summary,
        metric_label=metric_label,
    )


def _read(name: str) -> str:
    return files("ecg_gnn_lab.report").joinpath(name).read_text(encoding="utf-8")


def gather(tables: StudyTables) -> SimpleNamespace:
    """Everything that the page shows of a store, or of one recipe of it."""
    store, recipe, selection = tables.store, tables.recipe, tables.selection
    records, failures = store.records(recipe=recipe), store.failures(recipe=recipe)
    if not (records or failures):
        raise InputError(
            f"'store' {str(store.path)!r} has nothing to report: no unit of it has "
            "finished or failed"
        )
    machines = dict.fromkeys(r.result.provenance.get("device_name") for r in records)
    facts = {
        "recipe": recipe or ", ".join(store.recipes()),
        "finished": f"{len(records):,}",
        "failed": f"{len(failures):,}",
        "last": max([r.finished for r in records] + [f.finished for f in failures])[
            :10
        ],
        "on": ", ".join(filter(None, machines)),
        "ecg-gnn": __version__,
    }
    results, every = tables["results"].rows, tables["embeddings"].rows
    ecg = [row for row in results if row["variant"] == "ecg"]
    shown = {row["dataset"] for row in ecg}
    rows = {row["configuration"]: row for row in (*every, *results)}
    paints = {name: figure(tables) for name, figure in FIGURES.items()}
    documents = [tables[name] for name in _TABLES]
    return SimpleNamespace(
        lede=summary.lede(ecg),
        answers=summary.answers(ecg, every),
        tiles={(row["dataset"], row["model"]): row for row in ecg},
        # What must be said of a dataset wherever a number on it is shown.
        notes={
            i.name: i.note for i in selection.datasets if i.note and i.name in shown
        },
        boards=boards(tables["leaderboard"].rows),
        facts={name: text for name, text in facts.items() if text},
        sheets=[_without_empty_columns(each) for each in documents if each.rows],
        pictures={name: svg_text(paint) for name, paint in paints.items() if paint},
        details={
            id_: cell_detail(cell, selection.dataset(cell.key), rows[id_])
            for cell in selection.cells
            for id_ in [cell.chosen.configuration.id]
        },
    )


def _without_empty_columns(table: TableDocument) -> TableDocument:
    """A table without columns that say nothing; of p it is bold print that tells."""
    said = [
        column
        for column in table.columns
        if not column.key.endswith("_p_holm")
        and any(column.text(row) not in EMPTY for row in table.rows)
    ]
    return replace(table, columns=said)
