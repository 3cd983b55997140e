"""Columns to numbers: a pipeline of scikit-learn parts whose state is plain values."""

from ecg_gnn.tabular.features.pipeline import FeaturePipeline as FeaturePipeline
from ecg_gnn.tabular.features.pipeline import fit_features as fit_features
