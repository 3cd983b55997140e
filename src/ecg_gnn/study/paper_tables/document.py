"""A table as raw rows for programs and as columns of text for people."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ecg_gnn.study.table import markdown

Row = Mapping[str, Any]
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    "±": r"$\pm$",
    "−": "$-$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "—": "---",
}


@dataclass(frozen=True)
class Column:
    """How people read something of a row."""

    title: str
    show: Callable[[Row], str]


@dataclass(frozen=True, kw_only=True)
class TableDocument:
    """A table: ``rows`` has every number raw, ``columns`` says what is shown."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str]
    """What must be said beside the numbers"""
    rule_between: Sequence[str] = ("dataset", "model")
    """A line is drawn where one of these changes"""

    def cells(self) -> list[list[str]]:
        """The text of every row."""
        return [[column.show(row) for column in self.columns] for row in self.rows]

    def titles(self) -> list[str]:
        """The text above the columns."""
        return [column.title for column in self.columns]


def render(document: TableDocument, form: str) -> str:
    """A table as text in one of :data:`FORMATS`, with a newline at its end."""
    return FORMATS[form](document)


def _markdown(document: TableDocument) -> str:
    lines = [f"# {document.title}", ""]
    lines += [markdown((document.titles(), document.cells())), ""]
    lines += [f"- {note}" for note in document.notes]
    return "\n".join(lines).rstrip() + "\n"


def _latex(document: TableDocument) -> str:
    notes = " ".join(map(_escape, document.notes))
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape(document.title)}. {notes}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(document.columns) - 1)}}}",
        r"\toprule",
        _latex_line(document.titles()),
        r"\midrule",
    ]
    rules = [False, *(_differ(*pair, document) for pair in pairwise(document.rows))]
    for rule, cells in zip(rules, document.cells(), strict=False):
        lines += [r"\midrule"] * rule + [_latex_line(cells)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _differ(first: Row, second: Row, document: TableDocument) -> bool:
    return any(first.get(key) != second.get(key) for key in document.rule_between)


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_escape, cells)) + r" \\"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv(document: TableDocument) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in document.rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(document.rows)
    return out.getvalue()


def _json(document: TableDocument) -> str:
    content = {
        "table": document.name,
        "title": document.title,
        "rows": [dict(row) for row in document.rows],
        "notes": list(document.notes),
    }
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[TableDocument], str]] = {
    "md": _markdown,
    "latex": _latex,
    "csv": _csv,
    "json": _json,
}


def number(key: str, form: str = ".2f") -> Callable[[Row], str]:
    """Show one number; a dash where there is none."""
    return lambda row: "—" if row[key] is None else minus(f"{row[key]:{form}}")


def minus(text: str) -> str:
    """A number with a real minus sign."""
    return text.replace("-", "−")


def text(key: str) -> Callable[[Row], str]:
    """Show a value as it is; nothing where there is none."""
    return lambda row: "" if row[key] is None else str(row[key])
