"""The best results that others have published on the same graphs, with their sources.

As in :mod:`ecg_gnn.paper.numbers`, whoever asks must have made sure that the graph is
the official one: nothing is published on the substitute features of
``roman-empire-glove``.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Published(NamedTuple):
    """A result as its authors report it, in percent."""

    method: str
    mean: float
    std: float
    source: str
    unlike: str | None = None
    """How its protocol differs from ten official splits of the undirected graph"""


@cache
def _read() -> dict[str, Any]:
    text = files("ecg_gnn.paper").joinpath("published.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def num_splits() -> int:
    """Official splits of every graph; a result on fewer is marked."""
    return int(_read()["splits"])


def results(dataset: str) -> list[Published]:
    """Everything known about a graph, best first."""
    found = [
        _published(method, method["scores"][dataset])
        for method in _read()["methods"]
        if dataset in method["scores"]
    ]
    return sorted(found, key=lambda each: -each.mean)


def _published(method: dict[str, Any], score: dict[str, Any]) -> Published:
    return Published(
        method=method["name"],
        mean=score["mean"],
        std=score["std"],
        source=method["source"],
        unlike=score.get("unlike", method.get("unlike")),
    )


def of_model(dataset: str, model: str) -> Published | None:
    """What the authors of one of our models report, by its name in our tables."""
    for method in _read()["methods"]:
        if method.get("model") == model and dataset in method["scores"]:
            return _published(method, method["scores"][dataset])
    return None


def best(dataset: str) -> list[Published]:
    """The highest result under the same protocol; several where they are equal."""
    alike = [each for each in results(dataset) if each.unlike is None]
    return [each for each in alike if each.mean == alike[0].mean]


def higher_elsewhere(dataset: str) -> list[Published]:
    """Results above the best one that another protocol, or an unchecked one, gave."""
    bar = max((each.mean for each in best(dataset)), default=0.0)
    return [each for each in results(dataset) if each.mean > bar]
