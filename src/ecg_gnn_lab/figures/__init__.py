"""Figures of a study, from its records: effects, training curves, homophily, t-SNE."""

from ecg_gnn_lab.figures.from_tables import FIGURES, draw_figure, leaderboard

__all__ = ["FIGURES", "draw_figure", "leaderboard"]
