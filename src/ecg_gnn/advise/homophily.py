"""What homophily before and after says, and whether the scores agree."""

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.verdict import Kind
from ecg_gnn.study.statistics import Statistics
from ecg_gnn.system.canvas import minus

_ALIKE = 0.05
"""Graphs whose adjusted homophily is nearer than this are as homophilous."""


def homophily_words(advice: Advice) -> str:
    """Both graphs in numbers, which is the more homophilous, and what came of it."""
    before = f"In the graph as it is, {_described(advice.graph)}."
    if (chosen := advice.chosen) is None:
        return before
    found = advice.evolved(chosen)
    after = f"In the evolved graph, {_described(found)}."
    more = compare_homophily(advice.graph, found)
    if more is None:
        return f"{before} {after} Which is the more homophilous cannot be said."
    text = f"{before} {after} {matched(more, advice.verdict.kind)}"
    if more > 0 and _tells_less(advice.graph, found):
        text += (
            " More homophilous is not more informative: one neighbour's class tells "
            f"{_share(advice.graph)} of a node's class in the graph as it is and "
            f"{_share(found)} in the evolved one (label informativeness)."
        )
    return text


def compare_homophily(before: Statistics, after: Statistics) -> int | None:
    """+1 where the evolved graph is the more homophilous, −1 where less, else 0.

    By adjusted homophily, which classes of unequal size do not mislead.
    """
    old, new = before["adjusted_homophily"], after["adjusted_homophily"]
    if old is None or new is None:
        return None
    return 0 if abs(new - old) < _ALIKE else 1 if new > old else -1


def matched(more: int, kind: Kind) -> str:
    """Whether scores went where homophily pointed."""
    shape = {
        1: "The evolved graph is more homophilous",
        0: "The evolved graph is about as homophilous",
        -1: "The evolved graph is less homophilous",
    }[more]
    if kind == "cannot_tell":
        return f"{shape}; whether the scores follow is open."
    if kind == "use_evolved_graph":
        if more > 0:
            return f"{shape}, and the scores agree."
        return f"{shape}, and yet it helps: homophily is not what it brings."
    if more > 0:
        return (
            f"{shape}, and yet its edges do not help: what they say about a node, the "
            "network may know without them."
        )
    return f"{shape}, and the scores agree: its edges bring nothing new."


def _tells_less(before: Statistics, after: Statistics) -> bool:
    old, new = before["label_informativeness"], after["label_informativeness"]
    return old is not None and new is not None and new < old - _ALIKE


def _share(found: Statistics) -> str:
    return f"{100 * (found['label_informativeness'] or 0):.0f}%"


def _described(found: Statistics) -> str:
    edge = found["edge_homophily"]
    if edge is None:
        return "there is no edge between nodes with a class"
    others = {
        "node_homophily": "node homophily",
        "class_homophily": "class-insensitive",
        "adjusted_homophily": "adjusted",
    }
    shown = ", ".join(f"{name} {_number(found[key])}" for key, name in others.items())
    return f"{100 * edge:.0f}% of edges join nodes of one class ({shown})"


def _number(value: float | int | None) -> str:
    # Rounded first, and a zero added: there is no −0.00.
    return "undefined" if value is None else minus(f"{round(value, 2) + 0.0:.2f}")
