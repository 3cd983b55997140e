"""The paper's best settings, by dataset and model, for the preset ``paper``."""

import csv
from functools import cache
from importlib.resources import files
from typing import Any

from ecg_gnn.system.checks import InputError

_COLUMNS: dict[str, Any] = {"layers": int, "hidden": int, "embedding": str}
_COLUMNS |= {"k": int, "drop_edge": float}
# The paper lists the separated variants only, and of those that TAG resembles, SAGE.
_LISTED_AS = {"gat": "gat-sep", "gt": "gt-sep", "tag": "sage"}
# The substitute has the official graph and labels, so it borrows the settings.
_ORIGINALS = {"roman-empire-glove": "roman-empire"}


@cache
def _best() -> dict[str, dict[str, dict[str, Any]]]:
    """The paper's table, by model and dataset, with what it lists there.

    The embedding is that of the best ECG model, also where the plain model is better
    (SAGE on amazon-ratings).
    """
    text = files("ecg_gnn.data").joinpath("paper_settings.csv").read_text("utf-8")
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for row in csv.DictReader(text.splitlines()):
        listed = {key: read(row[key]) for key, read in _COLUMNS.items() if row[key]}
        table.setdefault(row["model"], {})[row["dataset"]] = listed
    return table


def best_settings(dataset: str, model: str) -> dict[str, Any]:
    """The paper's best hyper-parameters: layers, hidden, and k and drop_edge if any."""
    table = _best()[_LISTED_AS.get(model, model)]
    if (name := _ORIGINALS.get(dataset, dataset)) not in table:
        raise InputError(
            "'preset' paper has settings for the datasets "
            f"{[*table, *_ORIGINALS]} only (got {dataset!r}): use preset 'quick'"
        )
    return {key: value for key, value in table[name].items() if key != "embedding"}


def winning_embedding(dataset: str, model: str) -> str | None:
    """The embedding of the paper's best ECG model; None for a model without ECG."""
    best = _best().get(model, {}).get(_ORIGINALS.get(dataset, dataset), {})
    return best.get("embedding")
