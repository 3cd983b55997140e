"""What the paired differences allow to say, and nothing more.

A difference *is there* where its interval lies above zero, and *is not there* where it
lies below what is worth having; an interval that reaches from below zero to beyond that
leaves both open.
"""

from dataclasses import dataclass
from typing import Literal

from ecg_gnn.study.paired import PairedTest

Kind = Literal["use_evolved_graph", "path_not_edges", "no_help", "cannot_tell"]
Effect = Literal["helps", "does not help", "open"]

WORTH = 0.01
"""One point of accuracy or ROC AUC: a gain that is surely less is called none."""
HEADLINES: dict[Kind, str] = {
    "use_evolved_graph": "Use the evolved graph",
    "path_not_edges": "The extra path helps, its edges do not",
    "no_help": "No help",
    "cannot_tell": "Cannot tell within this budget",
}


@dataclass(frozen=True)
class Verdict:
    """One of four answers, and why it is this one."""

    kind: Kind
    because: str

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        return HEADLINES[self.kind]


def effect(test: PairedTest) -> Effect:
    """What a paired difference says."""
    if test.ci_low is None or test.ci_high is None:
        return "open"
    if test.ci_low > 0:
        return "helps"
    return "does not help" if test.ci_high < WORTH else "open"


def judge(baseline: PairedTest | None, identity: PairedTest | None) -> Verdict:
    """Whether an evolved graph helps, and whether by its edges.

    Args:
        baseline: ECG minus the plain network; None where nothing was finished.
        identity: ECG minus the same network with self-loops for evolved edges.
    """
    if baseline is None or identity is None:
        return Verdict("cannot_tell", "not one split was finished")
    if baseline.num_pairs == 1:
        return Verdict(
            "cannot_tell",
            "one split has no interval, so chance cannot be told from a gain",
        )
    whole, edges = effect(baseline), effect(identity)
    if whole == "helps":
        return _helps_by(edges)
    if whole == "does not help":
        return Verdict("no_help", _no_gain(baseline))
    if edges == "does not help":
        return Verdict(
            "cannot_tell",
            "its edges add nothing to an extra path from each node to itself, but "
            "whether that path helps is open",
        )
    return Verdict("cannot_tell", "the splits differ too much among themselves")


def _helps_by(edges: Effect) -> Verdict:
    if edges == "helps":
        return Verdict(
            "use_evolved_graph", "it is above the plain network and above the control"
        )
    if edges == "does not help":
        return Verdict(
            "path_not_edges",
            "it is above the plain network, but so is the control without new edges",
        )
    return Verdict(
        "cannot_tell",
        "it is above the plain network, but whether that is due to its edges or to "
        "the extra path is open",
    )


def _no_gain(baseline: PairedTest) -> str:
    if baseline.ci_high is not None and baseline.ci_high < 0:
        return "with it the network is worse than without"
    return f"if there is a gain, it is below {100 * WORTH:.0f} point"
