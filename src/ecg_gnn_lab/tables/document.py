"""A table as raw rows for programs and as columns of text for people."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ecg_gnn.config.identity import explain
from ecg_gnn.study.selection import Candidate, Cell, Selection
from ecg_gnn.study.store import DatasetInfo, Store
from ecg_gnn.system.canvas import minus
from ecg_gnn.system.cells import Table, markdown, safe_cell, without_html

Row = Mapping[str, Any]
_SYMBOLS = {"±": r"\pm", "−": "-", "→": r"\rightarrow", "×": r"\times", "<": "<"}
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {sign: f"${command}$" for sign, command in _SYMBOLS.items()}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"—": "---", "†": r"$\dagger$"}
)


class StudyTables(dict[str, "TableDocument"]):
    """The tables of a store, or of one recipe, each made when it is first needed."""

    def __init__(self, store: Store, recipe: str | None = None) -> None:
        self.store, self.recipe = store, recipe

    @cached_property
    def selection(self) -> Selection:
        """Its cells, each with the configuration that validation chose."""
        return Selection.of(self.store, recipe=self.recipe)

    def __missing__(self, name: str) -> "TableDocument":
        self[name] = TABLES[name](self)
        return self[name]


TABLES: dict[str, Callable[[StudyTables], "TableDocument"]] = {}
"""How each table is made; those who make one add it."""


def plain_text(row: Row, key: str) -> str:
    """A value as it is, and None as nothing."""
    return "" if row[key] is None else str(row[key])


class Column(NamedTuple):
    """How people read something of a row."""

    title: str
    key: str  # of the value that is shown, and that a report sorts by
    show: Callable[[Row, str], str] = plain_text  # makes text of a row and this key


@dataclass(frozen=True, kw_only=True)
class TableDocument:
    """A table: ``rows`` has every number raw, ``columns`` says what is shown."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()  # what must be said beside the numbers

    def texts(self) -> Table:
        """The text above the columns, and that of every row."""
        rows = [[c.show(row, c.key) for c in self.columns] for row in self.rows]
        return [column.title for column in self.columns], rows


def _markdown(document: TableDocument) -> str:
    lines = [f"# {document.title}", "", markdown(document.texts()), ""]
    lines += [f"- {note}" for note in document.notes]
    return without_html("\n".join(lines).rstrip() + "\n")


def _latex(document: TableDocument) -> str:
    caption = f"{document.title}. {' '.join(document.notes)}".translate(_LATEX)
    titles, rows = document.texts()
    header, *lines = (
        " & ".join(cell.translate(_LATEX) for cell in line) + r" \\"
        for line in (titles, *rows)
    )
    begin = rf"""% needs \usepackage{{booktabs}}
\begin{{table}}
\centering
\caption{{{caption}}}
\begin{{tabular}}{{l{"r" * (len(document.columns) - 1)}}}
\toprule"""
    end = ["\\bottomrule", "\\end{tabular}", "\\end{table}", ""]
    return "\n".join([begin, header, r"\midrule", *lines, *end])


def _csv(document: TableDocument) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in document.rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({n: safe_cell(v) for n, v in row.items()} for row in document.rows)
    return out.getvalue()


def _json(document: TableDocument) -> str:
    shown = {name: getattr(document, name) for name in ("title", "rows", "notes")}
    content = {"table": document.name, **shown}
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


FORMATS = {"md": _markdown, "latex": _latex, "csv": _csv, "json": _json}
"""A table as text, with a newline at its end."""


def score_values(candidate: Candidate) -> dict[str, Any]:
    """Scores as part of a raw row, in percent."""
    std = candidate.test_std
    return {
        "test_mean": 100 * candidate.test_mean,
        "test_std": None if std is None else 100 * std,
        "val_mean": 100 * candidate.val_mean,
    }


def score_text(row: Row, key: str = "test_mean") -> str:
    """Mean and standard deviation, of ours or of a published result."""
    mean, std = row[key], row[key.replace("_mean", "_std")]
    if mean is None:
        return "—"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def signed_text(value: float | None, none: str = "") -> str:
    """A difference in points, or ``none`` where there is none."""
    return none if value is None else minus(f"{value:+.2f}")


def within_spread(gap: float | None, *spreads: float | None) -> bool:
    """Whether the splits of ours, or of what is published, differ by more than it."""
    return gap is not None and abs(gap) <= max(spread or 0.0 for spread in spreads)


def signed_value(row: Row, key: str) -> str:
    """A difference of a row in points; nothing where there is none."""
    return signed_text(row[key])


def starred(row: Row, key: str) -> str:
    """A name, with a star where validation chose it."""
    return f"{row[key]} *" if row["best_on_validation"] else str(row[key])


def difference_text(row: Row, key: str) -> str:
    """A paired difference with its interval; † where precisions are unequal."""
    low, high = row[f"{key}_ci_low"], row[f"{key}_ci_high"]
    interval = "" if low is None else f" [{signed_text(low)}, {signed_text(high)}]"
    mark = " †" if row.get(f"{key}_unequal") else ""
    return signed_text(row[key]) + interval + mark


def p_text(p: float) -> str:
    """How likely chance alone is."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


PUBLISHED_COLUMNS = (
    Column("ours (%)", "test_mean", score_text),
    Column("published (%)", "published_mean", score_text),
    Column("ours − published", "published_difference", signed_value),
)
"""Ours beside what is published on the same model."""


def common_notes(selection: Selection, cells: Sequence[Cell]) -> list[str]:
    """Notes on the graphs shown, and on what was left out."""
    notes = dataset_notes([selection.dataset(cell.key) for cell in cells])
    notes += explain(tag for cell in cells for tag in cell.key.tags)
    if unfinished := sum(len(cell.incomplete) for cell in cells):
        notes.append(
            f"{unfinished} configurations have fewer finished trainings than others of "
            "their cell and could not be chosen."
        )
    if old := selection.left_out:
        said = "records of older numerics are not compared with newer ones"
        notes.append(f"{old} {said} and left out.")
    return notes


def dataset_notes(datasets: Sequence[DatasetInfo]) -> list[str]:
    """What must be said wherever a number on these graphs is shown."""
    notes = {info.name: info.note for info in datasets if info.note}
    return [f"{name}: {note}" for name, note in notes.items()]
