"""An executor that trains nothing: scores are what a function of the settings says."""

from collections import deque
from dataclasses import replace

from ecg_gnn.config.dotted import flatten
from ecg_gnn.study.outcomes import Failed
from small_runs import STATISTICS
from small_studies import result


class Killed(BaseException):
    """Ends a study as a signal would."""


class InventedScores:
    """See ecg_gnn.study.executors.Executor.

    Args:
        score: From the flat settings and the split to a validation score, or to an
            exception that is the unit's failure.
        room: How many jobs are taken before one of them, the newest, ends.
        dies_after: Units after which the whole study is killed.
    """

    def __init__(self, score, *, room=1, dies_after=None):
        self.score, self.room, self.dies_after = score, room, dies_after
        self.waiting = deque()
        self.ran = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.waiting.clear()

    def pick_device(self, name):
        return "cpu"

    def made_with(self, device):
        return {"device": device}

    def has_room(self):
        return len(self.waiting) < self.room

    def is_busy(self):
        return bool(self.waiting)

    def start(self, job):
        self.waiting.append(job)

    def ended(self):
        job = self.waiting.pop()
        for split in job.piece.splits:
            if len(self.ran) == self.dies_after:
                raise Killed
            settings = flatten(job.runner.config)
            self.ran.append((settings, split))
            yield job, split, self._outcome(job, self.score(settings, split))

    def _outcome(self, job, score):
        if isinstance(score, Exception):
            return Failed("error", str(score))
        row, variant = dict.fromkeys(STATISTICS, 0.25), job.piece.group.variant
        invented = result(0.5, score, variant, row)
        return replace(invented, provenance=job.runner.made_with)
