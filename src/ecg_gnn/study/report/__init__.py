"""The report of a study: one HTML file, for a browser without a network."""

from ecg_gnn.study.report.content import Content, gather
from ecg_gnn.study.report.page import render_report, write_report

__all__ = ["Content", "gather", "render_report", "write_report"]
