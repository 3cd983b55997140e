"""Tables as the page shows them: text, what it sorts by, and where a click leads."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ecg_gnn.study.paper_tables import TableDocument
from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.report.summary import SURE
from ecg_gnn.study.store import Failure
from ecg_gnn.study.table import configuration_name, model_name

_NUMBER = re.compile(r"<?\s*([+−-]?[\d,]*\.?\d+)(?=\s|$)")
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
class Column:
    """One column; numbers stand at its right."""

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
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str] = ()


def sheet_of(
    document: TableDocument, heading: str, detail: Callable[[Row], str | None]
) -> Sheet:
    """A table of the paper with a click behind every number."""
    rules = [False, *(_changes(*pair, document) for pair in pairwise(document.rows))]
    made = _sheet(
        document.name,
        heading,
        document.titles(),
        document.cells(),
        [detail(row) for row in document.rows],
        rules,
        [_sure_titles(row) for row in document.rows],
    )
    return Sheet(
        name=made.name,
        heading=heading,
        title=document.title.removeprefix(heading).lstrip(":; "),
        columns=made.columns,
        lines=made.lines,
        notes=document.notes,
    )


def failures_sheet(failures: Sequence[Failure], details: Sequence[str]) -> Sheet:
    """What could not be finished, and the last line of its error."""
    titles = ["dataset", "model", "variant", "split", "seed", "kind", "error", "when"]
    cells = []
    for failure in failures:
        at = failure.configuration
        last = (failure.error.strip().splitlines() or [""])[-1]
        names = [at.dataset, model_name(at.backbone, at.model)]
        names += [configuration_name(at)]
        cells.append([*names, str(failure.split), str(failure.seed), failure.kind])
        cells[-1] += [last[:200], failure.finished[:16].replace("T", " ")]
    plain: list[set[str]] = [set() for _ in cells]
    no_rules = [False] * len(cells)
    return _sheet("failures", "Failures", titles, cells, details, no_rules, plain)


def _sheet(
    name: str,
    heading: str,
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    details: Sequence[str | None],
    rules: Sequence[bool],
    sure: Sequence[set[str]],
) -> Sheet:
    said = [i for i in range(len(titles)) if any(row[i] not in _EMPTY for row in cells)]
    titles = [titles[i] for i in said]  # the paper may have nothing on these graphs
    cells = [[row[i] for i in said] for row in cells]
    numeric = [_is_numeric([row[i] for row in cells]) for i in range(len(titles))]
    lines: list[Line] = []
    above: Sequence[str] = [""] * len(titles)
    for row, detail, rule, certain in zip(cells, details, rules, sure, strict=False):
        fields = [
            Field(
                text=text,
                sort=_sort_value(text, number),
                same=title in ("dataset", "model") and text == before,
                sure=title in certain,
            )
            for text, before, title, number in zip(
                row, above, titles, numeric, strict=True
            )
        ]
        lines.append(Line(fields, detail, rule))
        above = row
    columns = [
        Column(title, number, title in _FACETS, _part(title))
        for title, number in zip(titles, numeric, strict=True)
    ]
    return Sheet(
        name=name, heading=heading, title=heading, columns=columns, lines=lines
    )


def _changes(first: Row, second: Row, document: TableDocument) -> bool:
    return any(first.get(key) != second.get(key) for key in document.rule_between)


def _sure_titles(row: Row) -> set[str]:
    """Columns whose difference is more than chance in this row."""
    found = set()
    for other in ("baseline", "identity"):
        p = row.get(f"minus_{other}_p_holm")
        if p is not None and p < SURE:
            found.add(f"− {other} [95% CI]")
    return found


def _is_numeric(texts: Sequence[str]) -> bool:
    written = [text for text in texts if text not in _EMPTY]
    return bool(written) and all(_NUMBER.match(text) for text in written)


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
    if title in ("layers", "width", "embedding", "k", "DropEdge", "self-loops"):
        return "settings"
    return title if title in ("tried", "source") else "records"
