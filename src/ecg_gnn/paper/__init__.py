"""The paper's own numbers, as data: settings to start from, values to compare with."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ecg_gnn.system.checks import InputError

# The substitute has the official graph and labels, so it borrows the settings.
SETTINGS_OF = {"roman-empire-glove": "roman-empire"}
# The table lists the separated variants only.
_MODEL_NAMES = {
    "resnet": "ResNet",
    "gcn": "GCN",
    "sage": "SAGE",
    "gat": "GAT-sep",
    "gat-sep": "GAT-sep",
    "gt": "GT-sep",
    "gt-sep": "GT-sep",
}


@cache
def tables() -> dict[str, Any]:
    """Every number of the paper's four tables."""
    text = files("ecg_gnn.paper").joinpath("tables.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def best_settings(dataset: str, model: str) -> dict[str, Any]:
    """The paper's best hyper-parameters: layers, hidden, and k and drop_edge if any.

    Raises:
        InputError: For a dataset that the paper has no settings for.
    """
    table = tables()["table_best_hparams"][_MODEL_NAMES[model]]
    name = SETTINGS_OF.get(dataset, dataset)
    known = table["num_layers"]
    if name not in known:
        raise InputError(
            "'preset' paper has settings for the datasets "
            f"{[*known, *SETTINGS_OF]} only (got {dataset!r}): use preset 'quick'"
        )
    found = {
        "layers": known[name],
        "hidden": table["hidden_dim"][name],
        "k": table.get("k", {}).get(name),
        "drop_edge": table.get("drop_edge", {}).get(name),
    }
    return {key: value for key, value in found.items() if value is not None}
