"""Figures of a study, from its records: effects, training curves, homophily, t-SNE."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ecg_gnn.study.store import Store
from ecg_gnn.system.canvas import Paint, draw
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.figures.curves import curves
from ecg_gnn_lab.figures.from_tables import effects, homophily, leaderboard
from ecg_gnn_lab.figures.tsne import Projection, draw_tsne, project
from ecg_gnn_lab.tables import StudyTables


class StudyFigure(NamedTuple):
    """A figure that is drawn from records alone."""

    paint: Callable[[StudyTables], Paint | None]
    """None where there is nothing to draw"""
    nothing: str
    """The error message in that case"""


FIGURES = {
    "effects": StudyFigure(
        effects,
        "an effect plot needs an ECG variant beside a baseline or identity: the store "
        "has none that is finished",
    ),
    "curves": StudyFigure(curves, "the store has no training curves to draw"),
    "homophily": StudyFigure(
        homophily, "the store has no evolved graph whose homophily was measured"
    ),
}
"""What ``study figure`` draws from records alone; t-SNE needs the graph itself."""

__all__ = ["FIGURES", "Projection", "draw_figure", "draw_tsne", "leaderboard"]
__all__ += ["project"]


def draw_figure(
    name: str,
    store: Store,
    path: Path,
    recipe: str | None = None,
    *,
    source: str | None = None,
) -> None:
    """Draw one of :data:`FIGURES` into a file that can say what it was drawn from.

    Raises:
        InputError: If the store, or the recipe's part of it, has nothing to draw.
    """
    paint = FIGURES[name].paint(StudyTables(store, recipe))
    if paint is None:
        raise InputError(FIGURES[name].nothing)
    draw(path, paint, source)
