"""The report of a study: one HTML file that reads nothing else, not even a font."""

import base64
import hashlib
import json
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

from ecg_gnn._version import __version__
from ecg_gnn.system.canvas import svg_text
from ecg_gnn.system.checks import InputError, MissingExtraError, metric_label
from ecg_gnn_lab.figures import FIGURES
from ecg_gnn_lab.report import summary
from ecg_gnn_lab.report.details import cell_detail
from ecg_gnn_lab.tables import StudyTables, document, scores
from ecg_gnn_lab.tables.document import TableDocument
from ecg_gnn_lab.tables.ranking import BEST, boards

_TABLES = ("results", "leaderboard", "embeddings", "hyperparameters", "statistics")
EMPTY = ("", "—", "undefined")  # texts of a table that say nothing


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
        said = "has nothing to report: no unit of it has finished or failed"
        raise InputError(f"'store' {str(store.path)!r} {said}")
    machines = dict.fromkeys(r.result.provenance.get("device_name") for r in records)
    ended = [each.finished for each in records] + [each.finished for each in failures]
    facts = {
        "recipe": recipe or ", ".join(store.recipes()),
        "finished": f"{len(records):,}",
        "failed": f"{len(failures):,}",
        "last": max(ended)[:10],
        "on": ", ".join(filter(None, machines)),
        "ecg-gnn": __version__,
    }
    results, every = tables["results"].rows, tables["embeddings"].rows
    ecg = [row for row in results if row["variant"] == "ecg"]
    named = {row["dataset"] for row in ecg}
    shown = [info for info in selection.datasets if info.name in named]
    rows = {row["configuration"]: row for row in (*every, *results)}
    paints = {name: figure(tables) for name, figure in FIGURES.items()}
    documents = [tables[name] for name in _TABLES]
    return SimpleNamespace(
        lede=summary.lede(ecg),
        answers=summary.answers(ecg, every),
        tiles={(row["dataset"], row["model"]): row for row in ecg},
        # What must be said of a dataset wherever a number on it is shown.
        notes={info.name: info.note for info in shown if info.note},
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
    pairs = zip(table.columns, zip(*table.texts()[1], strict=True), strict=True)
    filled = [column for column, texts in pairs if not set(EMPTY).issuperset(texts)]
    said = [column for column in filled if not column.key.endswith("_p_holm")]
    return replace(table, columns=said)
