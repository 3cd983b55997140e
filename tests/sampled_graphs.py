"""Two graphs over the same nodes, and ways to look at what is sampled from them."""

import torch
from torch_geometric.sampler import NodeSamplerInput

from ecg_gnn.kernels import Adjacency
from ecg_gnn.scale.sampler import NODE, edge_type
from toy_graphs import directed_edges, undirected_edges

NUM_NODES = 60


def two_graphs():
    edges = [undirected_edges(NUM_NODES, 400), directed_edges(NUM_NODES, 300, seed=3)]
    return [Adjacency.from_edge_index(each, NUM_NODES) for each in edges]


def sample(sampler, seeds):
    asked = NodeSamplerInput(
        input_id=None, node=torch.as_tensor(seeds), input_type=NODE
    )
    return sampler.sample_from_nodes(asked)


def sampled_edges(found, graph):
    """The sampled edges of a graph, in the numbers of all nodes."""
    nodes, name = found.node[NODE], edge_type(graph)
    return torch.stack([nodes[found.row[name]], nodes[found.col[name]]])


def pairs(edges):
    return set(map(tuple, edges.t().tolist()))
