"""STEP 2: embeddings become a graph; and how homophilous a graph is."""

from typing import TYPE_CHECKING

from ecg_gnn.system import lazy_names

if TYPE_CHECKING:
    from ecg_gnn.evolve.graph import EvolveGraph as EvolveGraph
    from ecg_gnn.evolve.graph import join_rows as join_rows
    from ecg_gnn.evolve.graph import share_rows as share_rows
    from ecg_gnn.evolve.graph import similarity_weights as similarity_weights
    from ecg_gnn.evolve.homophily import adjusted_homophily as adjusted_homophily
    from ecg_gnn.evolve.homophily import class_homophily as class_homophily
    from ecg_gnn.evolve.homophily import defined_statistics as defined_statistics
    from ecg_gnn.evolve.homophily import edge_homophily as edge_homophily
    from ecg_gnn.evolve.homophily import graph_statistics as graph_statistics
    from ecg_gnn.evolve.homophily import label_informativeness as label_informativeness
    from ecg_gnn.evolve.homophily import node_homophily as node_homophily
    from ecg_gnn.evolve.knn import EvolvedGraph as EvolvedGraph
    from ecg_gnn.evolve.knn import knn_graph as knn_graph
    from ecg_gnn.evolve.knn import knn_search as knn_search
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)
