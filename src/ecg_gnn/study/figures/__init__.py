"""Figures of a study, from its records: effects, training curves, homophily, t-SNE."""

from ecg_gnn.study.figures.curves import draw_curves
from ecg_gnn.study.figures.effects import draw_effects
from ecg_gnn.study.figures.homophily import draw_homophily
from ecg_gnn.study.figures.tsne import Projection, draw_tsne, project

FIGURES = {
    "effects": draw_effects,
    "curves": draw_curves,
    "homophily": draw_homophily,
}
"""What is drawn from records alone; t-SNE needs the graph itself."""

__all__ = ["FIGURES", "Projection", "draw_tsne", "project"]
