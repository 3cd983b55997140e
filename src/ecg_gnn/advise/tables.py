"""Scores and homophily of everything that was trained, as tables."""

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.contenders import PLAIN, Contender, identity_of
from ecg_gnn.study.compare import compare
from ecg_gnn.study.statistics import STATISTICS, Statistics
from ecg_gnn.study.table import (
    Table,
    format_difference,
    format_statistic,
)
from ecg_gnn.system.metric_names import metric_label


def score_table(advice: Advice) -> Table:
    """Mean ± sample standard deviation, and the paired differences."""
    header = ["variant", f"test {metric_label(advice.metric)} (%)", "validation (%)"]
    header += ["− baseline [95% CI]", "− identity [95% CI]"]
    return header, [_scores(advice, each) for each in advice.plan.contenders]


def graph_table(advice: Advice) -> Table:
    """Homophily of G and of every evolved graph, mean over the splits."""
    graphs = {"G": advice.graph}
    for each in advice.plan.contenders:
        if each.k is not None:
            graphs[each.graph_label] = advice.evolved(each)
    header = ["graph", *STATISTICS.values()]
    return header, [[name, *_cells(found)] for name, found in graphs.items()]


def _cells(found: Statistics) -> list[str]:
    return [format_statistic(key, found[key]) for key in STATISTICS]


def _scores(advice: Advice, contender: Contender) -> list[str]:
    found = advice.summary(contender)
    test = f"{100 * found.test_mean:.2f}"
    if found.test_std is not None:
        test += f" ± {100 * found.test_std:.2f}"
    rivals = [
        PLAIN if contender != PLAIN else None,
        identity_of(contender) if contender.k is not None else None,
    ]
    return [
        contender.label,
        test,
        f"{100 * found.val_mean:.2f}",
        *(_difference(advice, contender, rival) for rival in rivals),
    ]


def _difference(advice: Advice, ours: Contender, other: Contender | None) -> str:
    if other is None:
        return ""
    return format_difference(compare(advice.summary(ours), advice.summary(other)))
