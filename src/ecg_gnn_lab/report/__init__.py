"""The report of a study: one HTML file that reads nothing else, not even a font."""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import MissingExtraError, metric_label
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.report.content import EMPTY, Content, gather
from ecg_gnn_lab.report.summary import SURE, VERDICTS, verdict
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import Column, Row, score_text, signed_text

__all__ = ["Content", "gather", "render_report", "write_report"]


def write_report(store: Store, path: Path, recipe: str | None = None) -> None:
    """Write a store's report; the file is either whole or not there.

    Args:
        store: What to report on.
        path: The HTML file.
        recipe: Only units of this recipe; by default all that the store has.
    """
    write_text(path, render_report(gather(StudyTables(store, recipe))))


def render_report(content: Content) -> str:
    """The page as text."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report", "writing a report") from None
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "verdict": verdict,
        "verdicts": VERDICTS,
        "sure": SURE,
        "empty": EMPTY,
        "is_number": _is_number,
        "score": score_text,
        "signed": signed_text,
        "metric_label": metric_label,
    }
    script = f'"use strict";\n(() => {{\n{_read("report.js")}\n}})();\n'
    digest = hashlib.sha256(script.encode()).digest()
    # The page's policy lets this script run, and nothing slipped in.
    script_hash = f"sha256-{base64.b64encode(digest).decode()}"
    return environment.from_string(_read("page.html")).render(
        content=content,
        style=_read("style.css"),
        script=script,
        script_hash=script_hash,
        details=_embedded(content.details),
    )


def _is_number(column: Column, rows: Sequence[Row]) -> bool:
    values = [row[column.key] for row in rows if row[column.key] is not None]
    return all(isinstance(value, int | float) for value in values)


def _read(name: str) -> str:
    return files("ecg_gnn_lab.report").joinpath(name).read_text(encoding="utf-8")


def _embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
