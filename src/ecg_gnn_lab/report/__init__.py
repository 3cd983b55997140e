"""The report of a study: one HTML file that reads nothing else, not even a font."""

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import MissingExtraError
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.report.content import Content, gather
from ecg_gnn_lab.report.summary import VERDICTS
from ecg_gnn_lab.tables import StudyTables

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
    script = f'"use strict";\n(() => {{\n{_read("report.js")}\n}})();\n'
    return environment.from_string(_read("page.html")).render(
        content=content,
        verdicts=VERDICTS,
        kinds={tile.verdict.kind for tile in content.tiles.values()},
        rows=list(dict.fromkeys(dataset for dataset, _ in content.tiles)),
        columns=list(dict.fromkeys(model for _, model in content.tiles)),
        plots_after=_last_of_main_tables(content),
        style=_read("style.css"),
        script=script,
        script_hash=_hash(script),
        details=_embedded(content.details),
    )


def _last_of_main_tables(content: Content) -> str | None:
    """The table that figures of trainings and graphs follow."""
    names = [sheet.name for sheet in content.sheets]
    return "leaderboard" if "leaderboard" in names else next(iter(names), None)


def _read(name: str) -> str:
    return files("ecg_gnn_lab.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What the page's policy allows to run: this script, and nothing slipped in."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
