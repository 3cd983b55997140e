"""The answer: what the paired differences of test scores allow one to say.

A difference *helps* if its interval lies above zero, and *does not help* if it lies
below what is worth having; an interval that reaches across both is *open*.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from ecg_gnn.advise.question import PLAIN, Contender, Plan, Question
from ecg_gnn.advise.time_budget import Speed
from ecg_gnn.study.paired_tests import PairedTest, corrected, paired_test
from ecg_gnn.study.records import Record, Statistics, mean
from ecg_gnn.study.run import Summary, summarize
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
    if (test.ci_low or 0) > 0:
        return "helps"
    no_help = test.ci_high is not None and test.ci_high < WORTH
    return "does not help" if no_help else "open"


def judge(baseline: PairedTest | None, identity: PairedTest | None) -> Verdict:
    """Whether an evolved graph helps, and whether its edges are the reason.

    Takes ECG minus the plain network and minus the same network with self-loops for
    evolved edges; None if no split was finished.
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
    if total == "helps":
        if edges == "helps":
            return Verdict("use_evolved_graph", f"{above} and higher than the control")
        if edges == "does not help":
            reason = f"{above}, but so does the control without new edges"
            return Verdict("path_not_edges", reason)
        reason = f"{above}, but it is open whether the new edges are the reason"
    elif edges == "does not help":
        reason = (
            "the new edges add nothing beyond an extra path from each node to itself, "
            "and whether that path helps is open"
        )
    else:
        reason = "the results vary too much between splits"
    return Verdict("cannot_tell", reason)


@dataclass(frozen=True)
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

    def summary(self, contender: Contender) -> Summary:
        """One contender's scores over the splits."""
        return summarize([records[contender] for records in self.rounds])

    def evolved(self, contender: Contender) -> Statistics:
        """Homophily of a contender's first evolved graph, mean over the splits."""
        return mean([each[contender].evolved_statistics[0] for each in self.rounds])

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
        tests = corrected(
            paired_test([r[a].test - r[b].test for r in self.rounds], b.variant.name)
            for a, b in pairs.values()
        )
        return {name: test for name, test in zip(pairs, tests, strict=True) if test}

    @cached_property
    def verdict(self) -> Verdict:
        """The answer."""
        return judge(*map(self.tests.get, ("ecg_minus_baseline", "ecg_minus_identity")))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; scores are shares between 0 and 1."""
        chosen, dataset = self.chosen, self.question.dataset
        contenders = self.plan.contenders if self.rounds else ()
        evolved = [
            {"variant": c.variant.name, **_setting(c), **self.evolved(c)}
            for c in contenders
            if c.k is not None
        ]
        return {
            "dataset": dataset.name,
            "metric": dataset.metric,
            "note": dataset.note,
            "verdict": self.verdict.kind,
            "headline": self.verdict.headline,
            "because": self.verdict.because,
            "worth_having": WORTH,
            "chosen": chosen and _setting(chosen),
            "tests": {name: asdict(test) for name, test in self.tests.items()},
            "results": [asdict(self.summary(c)) | {"k": c.k} for c in contenders],
            "homophily": {"graph": self.graph, "evolved": evolved},
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
