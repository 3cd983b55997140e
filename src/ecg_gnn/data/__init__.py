"""Graphs: named ones, those in a user's files, and generated ones."""

from typing import TYPE_CHECKING

from ecg_gnn.system import lazy_names

if TYPE_CHECKING:
    from ecg_gnn.data.catalogue import CATALOGUE as CATALOGUE
    from ecg_gnn.data.catalogue import list_datasets as list_datasets
    from ecg_gnn.data.catalogue import load_dataset as load_dataset
    from ecg_gnn.data.catalogue import resolve_data_root as resolve_data_root
    from ecg_gnn.data.dataset import GraphDataset as GraphDataset
    from ecg_gnn.data.dataset import Split as Split
    from ecg_gnn.data.dataset import describe as describe
    from ecg_gnn.data.dataset import make_dataset as make_dataset
    from ecg_gnn.data.generators import csbm as csbm
    from ecg_gnn.data.graph_storage import write_npz as write_npz
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)
