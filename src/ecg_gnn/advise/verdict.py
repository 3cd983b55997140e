"""The answer: what the paired differences of test scores allow one to say.

A difference *helps* if its interval lies above zero, and *does not help* if it lies
below what is worth having; an interval that reaches across both is *open*.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ecg_gnn.advise.question import PLAIN, Contender, Plan, Question
from ecg_gnn.advise.time_budget import Speed
from ecg_gnn.study.compare import PairedTest, Summary, corrected, paired_test, summarize
from ecg_gnn.study.records import Record, Statistics, mean
from ecg_gnn.system.checks import metric_label

Round = Mapping[Contender, Record]
"""The records of every contender on one split."""
Kind = Literal["use_evolved_graph", "path_not_edges", "no_help", "cannot_tell"]
WORTH = 0.01
"""One point of accuracy or ROC AUC: a gain that is surely smaller counts as none."""
HEADLINES: dict[Kind, str] = {
    "use_evolved_graph": "Use the evolved graph",
    "path_not_edges": "The extra path helps, the new edges do not",
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


def effect(test: PairedTest) -> Literal["helps", "does not help", "open"]:
    """What a paired difference says."""
    if test.ci_low is None or test.ci_high is None:
        return "open"
    if test.ci_low > 0:
        return "helps"
    return "does not help" if test.ci_high < WORTH else "open"


def judge(baseline: PairedTest | None, identity: PairedTest | None) -> Verdict:
    """Whether an evolved graph helps, and whether its edges are the reason.

    Args:
        baseline: ECG minus the plain network; None if no split was finished.
        identity: ECG minus the same network with self-loops for evolved edges.
    """
    if baseline is None or identity is None:
        return Verdict("cannot_tell", "no split was finished")
    if baseline.num_pairs == 1:
        reason = "one split has no interval, so a gain cannot be told from chance"
        return Verdict("cannot_tell", reason)
    total, edges = effect(baseline), effect(identity)
    if total == "does not help":
        worse = baseline.ci_high is not None and baseline.ci_high < 0
        gain = f"any gain is below {100 * WORTH:.0f} point"
        return Verdict("no_help", "the network does worse with it" if worse else gain)
    above = "ECG scores higher than the plain network"
    if total == "helps" and edges == "helps":
        return Verdict("use_evolved_graph", f"{above} and higher than the control")
    if total == "helps" and edges == "does not help":
        reason = f"{above}, but so does the control without new edges"
        return Verdict("path_not_edges", reason)
    if total == "helps":
        reason = f"{above}, but it is open whether the new edges are the reason"
    elif edges == "does not help":
        reason = (
            "the new edges add nothing beyond an extra path from each node to itself, "
            "and whether that path helps is open"
        )
    else:
        reason = "the results vary too much between splits"
    return Verdict("cannot_tell", reason)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """All results; ``to_dict`` is what ``--json`` prints."""

    question: Question
    """Its config has no time limit; ``plan`` has the steps that were trained."""
    graph: Statistics
    """Homophily of the input graph."""
    plan: Plan
    """The part of the whole plan that was chosen to fit into the budget."""
    speed: Speed | None
    """None if time ran out while it was measured."""
    rounds: tuple[Round, ...]
    """One for each finished split."""
    stop: Literal["time", "interrupted"] | None
    """Why splits are missing; None if none is."""
    budget: float
    spent: float

    def records(self, contender: Contender) -> list[Record]:
        """One contender's records, in the order of the splits."""
        return [records[contender] for records in self.rounds]

    def summary(self, contender: Contender) -> Summary:
        """One contender's scores over the splits."""
        return summarize(self.records(contender))

    def evolved(self, contender: Contender) -> Statistics:
        """Homophily of a contender's first evolved graph, mean over the splits."""
        records = self.records(contender)
        return mean([record.evolved_statistics[0] for record in records])

    @property
    def metric(self) -> str:
        """The metric as tables and figures call it."""
        return metric_label(self.question.dataset.metric)

    @property
    def splits(self) -> tuple[int, ...]:
        """The splits on which every contender was trained."""
        return self.plan.splits[: len(self.rounds)]

    @cached_property
    def ranked(self) -> list[Contender]:
        """Candidates by mean validation score, best first; test scores play no part."""
        candidates = self.plan.candidates if self.rounds else ()
        return sorted(candidates, key=lambda each: -self.summary(each).val_mean)

    @property
    def chosen(self) -> Contender | None:
        """The candidate with the best mean validation score; the first if several."""
        return self.ranked[0] if self.ranked else None

    @cached_property
    def tests(self) -> dict[str, PairedTest]:
        """Paired differences of test scores, for the chosen candidate."""
        if (chosen := self.chosen) is None:
            return {}
        identity, random = self.plan.controls_of(chosen)
        pairs = {
            "ecg_minus_baseline": (chosen, PLAIN),
            "ecg_minus_identity": (chosen, identity),
            "ecg_minus_random": (chosen, random),
            "identity_minus_baseline": (identity, PLAIN),
        }
        tests = corrected(self._test(*pair) for pair in pairs.values())
        named = zip(pairs, tests, strict=True)
        return {name: test for name, test in named if test is not None}

    def _test(self, ours: Contender, other: Contender) -> PairedTest:
        records = zip(self.records(ours), self.records(other), strict=True)
        return paired_test([a.test - b.test for a, b in records], other.variant.name)

    @cached_property
    def verdict(self) -> Verdict:
        """The answer."""
        tests = self.tests
        return judge(tests.get("ecg_minus_baseline"), tests.get("ecg_minus_identity"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; scores are shares between 0 and 1."""
        chosen, dataset = self.chosen, self.question.dataset
        contenders = self.plan.contenders if self.rounds else ()
        return {
            "dataset": dataset.name,
            "metric": dataset.metric,
            "note": dataset.note,
            "verdict": self.verdict.kind,
            "headline": self.verdict.headline,
            "because": self.verdict.because,
            "worth_having": WORTH,
            "chosen": chosen and _setting(chosen),
            "tests": {k: dataclasses.asdict(v) for k, v in self.tests.items()},
            "results": [
                dataclasses.asdict(self.summary(each)) | {"k": each.k}
                for each in contenders
            ],
            "homophily": {
                "graph": self.graph,
                "evolved": [
                    {"variant": c.variant.name, **_setting(c), **self.evolved(c)}
                    for c in contenders
                    if c.k is not None
                ],
            },
            "budget_seconds": self.budget,
            "spent_seconds": self.spent,
            "stopped_by": self.stop,
            "planned": _plan(self.question.whole),
            "trained": _plan(self.plan) | {"splits": list(self.splits)},
            "config": self.question.config.to_dict(),
        }


def _setting(contender: Contender) -> dict[str, Any]:
    return {"embedding": contender.embedding, "k": contender.k}


def _plan(plan: Plan) -> dict[str, Any]:
    candidates = [_setting(candidate) for candidate in plan.candidates]
    return {"steps": plan.steps, "candidates": candidates, "splits": list(plan.splits)}
