"""STEP 2: embeddings become a graph; and how homophilous a graph is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecg_gnn.evolve.graph import EvolveGraph as EvolveGraph
    from ecg_gnn.evolve.graph import join_rows as join_rows
    from ecg_gnn.evolve.graph import share_rows as share_rows
    from ecg_gnn.evolve.graph import similarity_weights as similarity_weights
    from ecg_gnn.evolve.homophily import adjusted_homophily as adjusted_homophily
    from ecg_gnn.evolve.homophily import class_homophily as class_homophily
    from ecg_gnn.evolve.homophily import edge_homophily as edge_homophily
    from ecg_gnn.evolve.homophily import graph_statistics as graph_statistics
    from ecg_gnn.evolve.homophily import label_informativeness as label_informativeness
    from ecg_gnn.evolve.homophily import node_homophily as node_homophily
    from ecg_gnn.evolve.knn import EvolvedGraph as EvolvedGraph
    from ecg_gnn.evolve.knn import KnnGraph as KnnGraph
    from ecg_gnn.evolve.knn import knn_graph as knn_graph
    from ecg_gnn.evolve.knn import knn_search as knn_search

# Imported when first asked for: measuring homophily does not need PyG.
_HOMES = {
    "graph": (
        "EvolveGraph",
        "join_rows",
        "share_rows",
        "similarity_weights",
    ),
    "homophily": (
        "adjusted_homophily",
        "class_homophily",
        "edge_homophily",
        "graph_statistics",
        "label_informativeness",
        "node_homophily",
    ),
    "knn": ("EvolvedGraph", "KnnGraph", "knn_graph", "knn_search"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
