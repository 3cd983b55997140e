"""Tables as the page shows them: text, what it sorts by, and where a click leads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ecg_gnn.study.store import Failure
from ecg_gnn.study.table import configuration_name, model_name
from ecg_gnn_lab.report.summary import SURE
from ecg_gnn_lab.tables.document import Column, Row, TableDocument

_EMPTY = ("", "—", "undefined")
_FACETS = ("dataset", "model")


@dataclass(frozen=True)
class Field:
    """One cell."""

    text: str
    sort: float | str | None
    """What it is sorted by; None goes last"""
    same: bool
    """Whether the row above says the same"""
    sure: bool = False
    """Whether a difference is more than chance"""


@dataclass(frozen=True)
class Line:
    """One row with the details that it opens."""

    fields: Sequence[Field]
    detail: str | None
    rule: bool
    """Whether a line is drawn above it"""


@dataclass(frozen=True)
class Heading:
    """The head of a column; numbers stand at its right."""

    title: str
    number: bool
    facet: bool
    """Whether rows can be chosen by it"""
    part: str
    """The part of the details that its numbers belong to"""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table of the page."""

    name: str
    heading: str
    title: str
    columns: Sequence[Heading]
    lines: Sequence[Line]
    notes: Sequence[str] = ()


def sheet_of(
    document: TableDocument, heading: str, detail: Callable[[Row], str | None]
) -> Sheet:
    """A table of the paper with a click behind every number."""
    said = [  # the paper may have nothing on these graphs
        column
        for column in document.columns
        if any(column.text(row) not in _EMPTY for row in document.rows)
    ]
    columns = [_heading(column, document.rows) for column in said]
    texts = [[column.text(row) for column in said] for row in document.rows]
    rules, lines = document.rules(), []
    for place, row in enumerate(document.rows):
        above = texts[place - 1] if place else [""] * len(said)
        fields = [
            Field(
                text=text,
                sort=_sort_value(text, row[column.key], shown.number),
                same=shown.facet and text == before,
                sure=_is_sure(row, column),
            )
            for text, before, column, shown in zip(
                texts[place], above, said, columns, strict=True
            )
        ]
        lines.append(Line(fields, detail(row), rules[place]))
    return Sheet(
        name=document.name,
        heading=heading,
        title=document.title.removeprefix(heading).lstrip(":; ") or heading,
        columns=columns,
        lines=lines,
        notes=document.notes,
    )


def failures_table(failures: Sequence[Failure]) -> TableDocument:
    """What could not be finished, and the last line of its error."""
    rows = []
    for place, failure in enumerate(failures):
        at = failure.configuration
        last = (failure.error.strip().splitlines() or [""])[-1]
        rows.append(
            {
                "dataset": at.dataset,
                "model": model_name(at.backbone, at.model),
                "variant": configuration_name(at),
                "split": failure.split,
                "seed": failure.seed,
                "kind": failure.kind,
                "error": last[:200],
                "when": failure.finished[:16].replace("T", " "),
                "detail": f"f{place}",
            }
        )
    names = [name for name in (rows[0] if rows else ()) if name != "detail"]
    return TableDocument(
        name="failures",
        title="Failures",
        columns=[Column(name, name) for name in names],
        rows=rows,
        notes=[],
        rule_between=(),
    )


def _heading(column: Column, rows: Sequence[Row]) -> Heading:
    values = [row[column.key] for row in rows if row[column.key] is not None]
    number = all(isinstance(value, int | float) for value in values)
    return Heading(column.title, number, column.title in _FACETS, column.part)


def _is_sure(row: Row, column: Column) -> bool:
    """Whether a column shows a difference that is more than chance."""
    p = row.get(f"{column.key}_p_holm")
    return p is not None and p < SURE


def _sort_value(text: str, value: Any, number: bool) -> float | str | None:
    if text in _EMPTY or value is None:
        return None
    # Six digits: the last ones differ from one machine to the next.
    return float(f"{value:.6g}") if number else text.casefold()
