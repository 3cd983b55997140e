"""Figures of a study, from its records: effects, training curves, homophily, t-SNE."""

from ecg_gnn_lab.figures.from_tables import FIGURES, draw_figure, leaderboard
from ecg_gnn_lab.figures.tsne import Projection, draw_tsne, project

__all__ = ["FIGURES", "Projection", "draw_figure", "draw_tsne", "leaderboard"]
__all__ += ["project"]
