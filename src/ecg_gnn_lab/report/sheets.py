"""Tables as the page shows them: text, what it sorts by, and where a click leads."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ecg_gnn.study.store import Failure
from ecg_gnn.study.table import configuration_name, model_name
from ecg_gnn_lab.report.summary import SURE
from ecg_gnn_lab.tables.document import Row, TableDocument
from ecg_gnn_lab.tables.scores import RIVALS

_NUMBER = re.compile(r"<?\s*([+−-]?[\d,]*\.?\d+)(?=\s|$)")
_EMPTY = ("", "—", "undefined")
_FACETS = ("dataset", "model")
_SETTINGS = ("layers", "width", "embedding", "k", "DropEdge", "self-loops")


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
    columns, fields = _typeset(document.titles(), document.cells(), document.rows)
    parts = zip(fields, map(detail, document.rows), document.rules(), strict=False)
    return Sheet(
        name=document.name,
        heading=heading,
        title=document.title.removeprefix(heading).lstrip(":; "),
        columns=columns,
        lines=[Line(*part) for part in parts],
        notes=document.notes,
    )


def failures_sheet(failures: Sequence[Failure], details: Sequence[str]) -> Sheet:
    """What could not be finished, and the last line of its error."""
    titles = ["dataset", "model", "variant", "split", "seed", "kind", "error", "when"]
    cells = []
    for failure in failures:
        at = failure.configuration
        last = (failure.error.strip().splitlines() or [""])[-1]
        names = [at.dataset, model_name(at.backbone, at.model), configuration_name(at)]
        cells.append([*names, str(failure.split), str(failure.seed), failure.kind])
        cells[-1] += [last[:200], failure.finished[:16].replace("T", " ")]
    columns, fields = _typeset(titles, cells, [{} for _ in cells])
    return Sheet(
        name="failures",
        heading="Failures",
        title="Failures",
        columns=columns,
        lines=[Line(*part, False) for part in zip(fields, details, strict=True)],
    )


def _typeset(
    titles: Sequence[str], cells: Sequence[Sequence[str]], rows: Sequence[Row]
) -> tuple[list[Heading], list[list[Field]]]:
    """Columns that say something, and the cells of every row."""
    said = [i for i in range(len(titles)) if any(row[i] not in _EMPTY for row in cells)]
    columns = [
        Heading(
            title=titles[i],
            number=all(_NUMBER.match(r[i]) for r in cells if r[i] not in _EMPTY),
            facet=titles[i] in _FACETS,
            part=_part(titles[i]),
        )
        for i in said  # the paper may have nothing on these graphs
    ]
    shown = [[row[i] for i in said] for row in cells]
    fields = []
    for place, (texts, row) in enumerate(zip(shown, rows, strict=True)):
        above = shown[place - 1] if place else [""] * len(said)
        sure = _sure_titles(row)
        fields.append(
            [
                Field(
                    text=text,
                    sort=_sort_value(text, column.number),
                    same=column.facet and text == before,
                    sure=column.title in sure,
                )
                for text, before, column in zip(texts, above, columns, strict=True)
            ]
        )
    return columns, fields


def _sure_titles(row: Row) -> set[str]:
    """Columns whose difference is more than chance in this row."""
    p_values = {other: row.get(f"minus_{other}_p_holm") for other in RIVALS}
    sure = [other for other, p in p_values.items() if p is not None and p < SURE]
    return {f"− {other} [95% CI]" for other in sure}


def _sort_value(text: str, number: bool) -> float | str | None:
    if text in _EMPTY:
        return None
    if not number:
        return text.casefold()
    found = _NUMBER.match(text)
    assert found is not None, "a column of numbers has numbers only"
    return float(found[1].replace(",", "").replace("−", "-"))


def _part(title: str) -> str:
    if title.startswith(("−", "p Holm")):
        return "tests"
    if title in _SETTINGS:
        return "settings"
    return title if title in ("tried", "source") else "records"
