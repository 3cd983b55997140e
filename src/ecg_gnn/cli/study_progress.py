"""A study's progress as lines: what ended, how fast, how long it will still take."""

import time
from collections.abc import Callable

from ecg_gnn.cli.show import ProgressDisplay
from ecg_gnn.config.run_config import Settings
from ecg_gnn.study.execute import Ended
from ecg_gnn.study.store import Failed
from ecg_gnn.study.table import configuration_name, model_name
from ecg_gnn.study.work import Counts, TrialEnded


class StudyLines:
    """Shows what a study reports, line by line."""

    def __init__(self, display: ProgressDisplay) -> None:
        self.display = display
        self.started = time.monotonic()

    def counted(self, counts: Counts) -> None:
        """How many units there are before anything runs."""
        self.started = time.monotonic()
        text = f"{counts.total} units: {counts.done} done"
        text += f", {counts.failed} failed" if counts.failed else ""
        text += f", {counts.running} running elsewhere" if counts.running else ""
        self.display.say(text)

    def skipped(self, dataset: str, reason: str) -> None:
        """A dataset that is not here."""
        self.display.say(
            f"skipping {dataset}: {reason} (--datasets {dataset} would fetch it or "
            "say how to)"
        )

    def progress(self, title: str, work: str) -> Callable[[int, int, float], None]:
        """A bar for the training that is going on."""
        return self.display.start(title, work)

    def ended(self, ended: Ended) -> None:
        """One line per unit."""
        at = ended.group.configuration
        model = (
            "" if at.task == "statistics" else f"{model_name(at.backbone, at.model)} "
        )
        name = f"{at.dataset} {model}{configuration_name(at)}"
        seed = f" seed {ended.group.config.seed}" if ended.group.config.seed else ""
        self.display.say(
            f"[{ended.total - ended.left}/{ended.total}] {name} split {ended.split}"
            f"{seed}: {_result_text(ended)} · {self._pace(ended)}"
        )
        if ended.trial is not None:
            self.display.say(f"{name}: {_trial_text(ended.trial)}")

    def _pace(self, ended: Ended) -> str:
        seconds = max(time.monotonic() - self.started, 1e-9)
        rate = 60 * ended.ran / seconds
        left = duration(ended.left * seconds / ended.ran)
        return f"{rate:.1f} a minute, {left} left"


def _result_text(ended: Ended) -> str:
    outcome = ended.outcome
    if isinstance(outcome, Failed):
        return f"failed ({outcome.kind}): {outcome.error.splitlines()[-1]}"
    if outcome.test is None:
        homophily = outcome.evolved_statistics[0]["edge_homophily"]
        shown = "undefined" if homophily is None else f"{homophily:.3f}"
        return f"h_edge {shown} ({outcome.seconds:.1f} s)"
    test, step = 100 * outcome.test, outcome.best_step
    return f"test {test:.2f} at step {step} ({outcome.seconds:.1f} s)"


def _trial_text(trial: TrialEnded) -> str:
    """What came of one point of a search."""
    val = "" if trial.val is None else f", validation {100 * trial.val:.2f}"
    best = "" if trial.best is None else f" (best {100 * trial.best:.2f})"
    return (
        f"trial {trial.number + 1} of {trial.trials} {trial.ended} after "
        f"{trial.splits} splits{val}{best}: {settings_text(trial.point)}"
    )


def settings_text(point: Settings) -> str:
    """Settings as people write them: ``train.lr=0.003, evolve.k=10``."""
    shown = {
        name: f"{value:.4g}" if isinstance(value, float) else str(value)
        for name, value in point.items()
    }
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "no choice"


def duration(seconds: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
