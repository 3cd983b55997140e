"""The three steps of the paper, written once: see ``pipeline.method``."""

from ecg_gnn.pipeline.classification import Classification as Classification
from ecg_gnn.pipeline.method import classify as classify
from ecg_gnn.pipeline.method import embed as embed
from ecg_gnn.pipeline.method import embed_as_input as embed_as_input
from ecg_gnn.pipeline.method import evolve as evolve
from ecg_gnn.pipeline.resolve import choose_variants as choose_variants
from ecg_gnn.pipeline.resolve import evolves as evolves
from ecg_gnn.pipeline.resolve import resolve as resolve
from ecg_gnn.pipeline.workspace import Workspace as Workspace
from ecg_gnn.pipeline.workspace import embed_for_new_nodes as embed_for_new_nodes
