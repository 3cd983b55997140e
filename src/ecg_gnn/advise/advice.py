"""The advice: measures the criterion, and trains as far as the budget goes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

from ecg_gnn.advise.criterion import Gain, interval, measure_gain
from ecg_gnn.advise.question import Array, Candidate, KnownNodes, Question
from ecg_gnn.config import reads_labels
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.pipeline import Workspace
from ecg_gnn.system.machine import holding, threads_for, using_threads
from ecg_gnn.train import Progress

VARIANTS = ("baseline", "identity", "ecg", "embedding")
DIFFERENCES = ("ecg_minus_baseline", "ecg_minus_identity", "ecg_minus_embedding")
PARTS = {"held_out": "held-out nodes", "test": "test nodes"}
# Kept for intervals, text and the figure, which come after the last training.
_REPORT_SECONDS, _REPORT_SHARE = 4.0, 0.1
# By then candidates are measured; those that do not fit are left out.
_CRITERION_SHARE = 0.6
# Trainings get this share of the budget; a round takes so many times the plain one.
_TRAINING_SHARE, _ROUND, _MIN_STEPS, _TIMED_STEPS = 0.5, 6, 20, (2, 6)


class OutOfTime(Exception):  # noqa: N818 - an answer, not an error
    """The budget ran out in the middle of something."""


@dataclass
class Stopwatch:
    """A budget in seconds that starts to run when this is created."""

    budget: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self.clock()

    def spent(self) -> float:
        return self.clock() - self._started

    def left(self, share: float = 1.0) -> float:
        """Seconds left of a share of the budget, less what the report takes."""
        kept = min(_REPORT_SECONDS, _REPORT_SHARE * self.budget)
        return share * (self.budget - kept) - self.spent()


class Difference(NamedTuple):
    """A mean paired difference of scores, with its 95% interval over nodes."""

    mean: float
    ci_low: float
    ci_high: float


@dataclass
class Advice:
    """A question, and all that is found out about it so far."""

    question: Question
    watch: Stopwatch
    cache: EmbeddingCache | None = None
    display: Callable[[str, str], Progress] | None = None
    """Starts to show the progress of one piece of work, given a title and a name."""
    say: Callable[[str], None] = lambda _: None
    gains: list[Gain] = field(default_factory=list)
    """Of every candidate that was measured, best first."""
    splits: list[int] = field(default_factory=list)
    """Those on which all variants were trained."""
    scores: dict[str, dict[str, list[Array]]] = field(default_factory=dict)
    """Of single nodes by part, variant and split; NaN where a node has none."""
    differences: dict[str, dict[str, Difference]] = field(default_factory=dict)
    """Paired differences of scores by part, for the best candidate, at the end."""
    stop: Literal["time", "interrupted"] | None = None
    spent: float = 0.0

    def __post_init__(self) -> None:
        self.shape, self._share = self.question.shape, 1.0
        self.scores = {part: {v: [] for v in VARIANTS} for part in PARTS}

    def find_out(self) -> None:
        """The criterion on the first split, then trainings on all."""
        dataset = self.question.dataset
        self._inputs = GraphInputs.of(dataset.x.numpy(), dataset.edge_index)
        nodes = self._nodes(self.question.splits[0])
        self._choose_steps(nodes)
        networks = {v: self._train(nodes, v) for v in ("baseline", "identity")}
        self._measure(nodes, networks)
        if reads_labels(self.gains[0].candidate.embedding):
            # Networks of single folds choose their own steps, so all variants must.
            networks = {}
        for split in self.question.splits:
            started = self.watch.spent()
            if split != nodes.index:
                nodes, networks = self._nodes(split), {}
            self._compare(nodes, networks)
            seconds = self.watch.spent() - started
            if split != self.question.splits[-1] and seconds > self.watch.left():
                raise OutOfTime
        if len(self.gains) < len(self.question.candidates):
            raise OutOfTime

    def _choose_steps(self, nodes: KnownNodes) -> None:
        # As many as the budget allows, from the time that a few take.
        usual = self.shape
        for steps in _TIMED_STEPS:  # kernels are built in the first
            started, show = self.watch.spent(), self._tick("timing", "baseline")
            nodes.train("baseline", replace(usual, steps=steps), progress=show)
        seconds = max(self.watch.spent() - started, 1e-6) / _TIMED_STEPS[-1]
        fitting = int(_TRAINING_SHARE * self.watch.left() / (_ROUND * seconds))
        self.shape = replace(usual, steps=min(usual.steps, max(_MIN_STEPS, fitting)))

    def _measure(self, nodes: KnownNodes, networks: dict[str, Array]) -> None:
        candidates, self._share = self.question.candidates, _CRITERION_SHARE
        try:
            for each in candidates:
                self._check()
                gain = measure_gain(nodes, each, networks, len(candidates))
                self.gains.append(gain)
                self.gains.sort(key=lambda one: -one.mean)
                self.say(f"{each.label}: labels of evolved neighbours add {gain} nats")
        except OutOfTime:
            if not self.gains:
                raise
        self._share = 1.0

    def _compare(self, nodes: KnownNodes, networks: dict[str, Array]) -> None:
        best, dataset = self.gains[0].candidate, self.question.dataset
        for variant in VARIANTS:
            if variant not in networks:
                networks[variant] = self._train(nodes, variant, best)
        for variant, shares in networks.items():
            test = nodes.split.test_mask.numpy(), shares.mean(axis=0)
            held_out = nodes.mask, nodes.held_out(shares)
            for part, (mask, said) in zip(PARTS, (held_out, test), strict=True):
                found, y = np.full(len(mask), np.nan), dataset.y.numpy()[mask]
                if mask.any():
                    found[mask] = node_scores(dataset.metric, y, said[mask])
                self.scores[part][variant].append(found)
        self.splits.append(nodes.index)
        count = f"{len(self.splits)}/{len(self.question.splits)}"
        self.say(f"[{count}] split {nodes.index}: {len(VARIANTS)} trainings")

    def _nodes(self, split: int) -> KnownNodes:
        show = partial(self._tick, f"split {split}")
        workspace = Workspace(cache=self.cache, progress=show)
        given = self.question.config, workspace, self._inputs
        return KnownNodes(self.question.dataset, split, *given)

    def _train(
        self, nodes: KnownNodes, variant: str, candidate: Candidate | None = None
    ) -> Array:
        show = self._tick(f"split {nodes.index}", variant)
        return nodes.train(variant, self.shape, candidate, show)

    def _check(self) -> None:
        if self.watch.left(self._share) <= 0:
            raise OutOfTime

    def _tick(self, title: str, work: str) -> Progress:
        show = self.display(title, work) if self.display else lambda *_: None

        def tell(done: int, total: int, score: float) -> None:
            show(done, total, score)
            self._check()

        return tell

    def compare_scores(self, part: str) -> dict[str, Difference]:
        """The differences on one part.

        A node counts once, with its mean over the splits in which it has a score.
        """
        found = {}
        for name in (*DIFFERENCES, "identity_minus_baseline") if self.splits else ():
            ours, theirs = (self.scores[part][v] for v in name.split("_minus_"))
            gaps = np.array(ours) - np.array(theirs)
            count = np.sum(~np.isnan(gaps), axis=0)
            if np.any(seen := count > 0):
                gap = np.nansum(gaps[:, seen], axis=0) * seen.sum() / count.sum()
                found[name] = Difference(float(gap.mean()), *interval(gap))
        return found

    def mean_score(self, part: str, variant: str) -> float | None:
        """Over the splits; None without nodes."""
        scores = [s[~np.isnan(s)] for s in self.scores[part][variant]]
        means = [each.mean() for each in scores if len(each)]
        return float(np.mean(means)) if means else None


def node_scores(metric: str, y: Array, shares: Array) -> Array:
    """Scores of single nodes, whose mean is the metric.

    Accuracy has them; of ROC AUC they are its influence function (DeLong et al.).
    """
    if metric == "accuracy":
        return np.asarray(shares.argmax(axis=1) == y, dtype=float)
    said, positive = shares[:, 1], y == 1
    own, counts = np.empty(len(y)), np.empty(len(y))
    for part in (positive, ~positive):
        own[part], counts[part] = rankdata(said[part]), part.sum()
    below = (rankdata(said) - own) / (len(y) - counts)
    share = np.where(positive, below, 1 - below)
    area = share[positive].mean()
    return np.asarray(area + (share - area) * len(y) / counts)


@holding("fit")
def advise(question: Question, watch: Stopwatch, **options: Any) -> Advice:
    """What ``Advice`` finds out within the budget, or until Ctrl-C.

    The watch has run since the caller's work began; options are fields of ``Advice``.
    """
    advice, dataset = Advice(question, watch, **options), question.dataset
    size = dataset.num_nodes + dataset.edge_index.size(1)
    try:
        with using_threads(threads_for(size)):
            advice.find_out()
    except OutOfTime:
        advice.stop = "time"
    except KeyboardInterrupt:
        advice.stop = "interrupted"
    advice.differences = {part: advice.compare_scores(part) for part in PARTS}
    advice.spent = watch.spent()
    return advice
