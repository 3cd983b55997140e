"""What was found out about one graph, and the answer."""

import dataclasses
import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ecg_gnn.advise.contenders import PLAIN, Contender, identity_of, random_of
from ecg_gnn.advise.plan import Plan
from ecg_gnn.advise.rounds import Rounds
from ecg_gnn.advise.verdict import WORTH, Verdict, judge
from ecg_gnn.config import RunConfig
from ecg_gnn.study.compare import Summary, summarize
from ecg_gnn.study.paired import PairedTest, corrected, paired_test
from ecg_gnn.study.statistics import Statistics, mean


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Everything that was found; ``to_dict`` is what ``--json`` prints."""

    dataset: str
    metric: str
    note: str
    config: RunConfig
    """Settings without a budget; steps and k of what was trained are in ``rounds``"""
    budget: float
    spent: float
    rounds: Rounds
    graph: Statistics
    """Homophily of the input graph"""

    @property
    def plan(self) -> Plan:
        """What was trained, or would have been."""
        return self.rounds.plan or self.rounds.whole

    @property
    def splits(self) -> tuple[int, ...]:
        """On which every contender was trained."""
        return self.plan.splits[: len(self.rounds.records)]

    @cached_property
    def chosen(self) -> Contender | None:
        """The candidate with the best mean validation score."""
        return choose(self.rounds)

    @cached_property
    def verdict(self) -> Verdict:
        """The answer."""
        tests = self.tests
        return judge(tests.get("ecg_minus_baseline"), tests.get("ecg_minus_identity"))

    @cached_property
    def tests(self) -> dict[str, PairedTest]:
        """Paired differences of test scores, for the chosen candidate."""
        return compare_chosen(self.rounds, self.chosen)

    def controls(self) -> list[Contender]:
        """Identity and random, of the chosen candidate's size."""
        if (chosen := self.chosen) is None:
            return []
        return [identity_of(chosen), random_of(chosen, self.plan.candidates[0].k)]

    def ranked(self) -> list[Contender]:
        """The candidates by mean validation score, the best first."""
        return rank(self.rounds)

    def summary(self, contender: Contender) -> Summary:
        """One contender's scores over the splits."""
        return summarize(self.rounds.of(contender))

    def evolved(self, contender: Contender) -> Statistics:
        """Homophily of a contender's first evolved graph, mean over the splits."""
        records = self.rounds.of(contender)
        return mean([record.evolved_statistics[0] for record in records])

    def to_dict(self) -> dict[str, Any]:
        """Plain values; scores are shares between 0 and 1."""
        chosen, done = self.chosen, self.rounds.records
        contenders = self.plan.contenders if done else ()
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "note": self.note,
            "verdict": self.verdict.kind,
            "headline": self.verdict.headline,
            "because": self.verdict.because,
            "worth_having": WORTH,
            "chosen": chosen and {"embedding": chosen.embedding, "k": chosen.k},
            "tests": {k: dataclasses.asdict(v) for k, v in self.tests.items()},
            "results": [_row(each, self.summary(each)) for each in contenders],
            "homophily": {
                "graph": self.graph,
                "evolved": [
                    {**_name(each), **self.evolved(each)}
                    for each in contenders
                    if each.k is not None
                ],
            },
            "budget_seconds": self.budget,
            "spent_seconds": self.spent,
            "stopped_by": self.rounds.stop,
            "planned": _plan(self.rounds.whole),
            "trained": {**_plan(self.plan), "splits": list(self.splits)},
            "config": self.config.to_dict(),
        }


def rank(rounds: Rounds) -> list[Contender]:
    """Candidates by mean validation score; test scores are not looked at."""
    if rounds.plan is None or not rounds.records:
        return []
    scores = {
        each: statistics.fmean(record.val for record in rounds.of(each))
        for each in rounds.plan.candidates
    }
    return sorted(scores, key=lambda each: -scores[each])


def choose(rounds: Rounds) -> Contender | None:
    """The best of :func:`rank`; of equal ones the first."""
    return next(iter(rank(rounds)), None)


def compare_chosen(rounds: Rounds, chosen: Contender | None) -> dict[str, PairedTest]:
    """Test the chosen candidate, and its control, on the test scores of all splits."""
    if chosen is None or rounds.plan is None:
        return {}
    identity = identity_of(chosen)
    rival = random_of(chosen, rounds.plan.candidates[0].k)
    tests = {
        "ecg_minus_baseline": _test(rounds, chosen, PLAIN),
        "ecg_minus_identity": _test(rounds, chosen, identity),
        "ecg_minus_random": _test(rounds, chosen, rival),
        "identity_minus_baseline": _test(rounds, identity, PLAIN),
    }
    found = corrected(tests.values())
    return {
        name: test for name, test in zip(tests, found, strict=True) if test is not None
    }


def _test(rounds: Rounds, ours: Contender, other: Contender) -> PairedTest:
    pairs = zip(rounds.of(ours), rounds.of(other), strict=True)
    return paired_test([a.test - b.test for a, b in pairs], other.variant.name)


def _name(contender: Contender) -> dict[str, Any]:
    name = contender.variant.name
    return {"variant": name, "embedding": contender.variant.embedding, "k": contender.k}


def _row(contender: Contender, summary: Summary) -> dict[str, Any]:
    return {**dataclasses.asdict(summary), **_name(contender)}


def _plan(plan: Plan) -> dict[str, Any]:
    named = [{"embedding": c.embedding, "k": c.k} for c in plan.candidates]
    return {"steps": plan.steps, "candidates": named, "splits": list(plan.splits)}
