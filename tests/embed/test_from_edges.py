"""Embeddings made of edges: alike structure, nearness along edges, nothing else."""

import pytest
import torch

from ecg_gnn.embed import PositionEmbedder, StructureEmbedder, embed_nodes
from ecg_gnn.embed.from_edges import on_a_sphere
from ecg_gnn.evolve import knn_graph
from toy_graphs import labelled_graph, random

BOTH = [StructureEmbedder(), PositionEmbedder()]


def on_edges(edges, num_nodes):
    data, split = labelled_graph(num_nodes=num_nodes)
    data.edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    return data, split


def embedded(embedder, edges, num_nodes):
    return embed_nodes(embedder, *on_edges(edges, num_nodes), seed=0)


def path(num_nodes):
    return torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])


@pytest.mark.parametrize("embedder", BOTH)
def test_features_do_not_matter(embedder):
    data, split = labelled_graph()
    first = embed_nodes(embedder, data, split, seed=0)
    data.x = random(40, 6, seed=9, dtype=torch.float32)
    assert torch.equal(first, embed_nodes(embedder, data, split, seed=0))


def test_both_ends_of_a_path_have_one_structure():
    z = embedded(StructureEmbedder(), path(30), 30)
    assert torch.equal(z, z.flip(0))
    assert z.unique(dim=0).size(0) == 4  # as many as steps to an end tell apart


def test_structure_does_not_depend_on_numbering():
    data, split = labelled_graph()
    new_id = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    z = embed_nodes(StructureEmbedder(), data, split, seed=0)
    data.edge_index = new_id[data.edge_index]
    renamed = embed_nodes(StructureEmbedder(), data, split, seed=0)
    torch.testing.assert_close(renamed[new_id], z, atol=1e-6, rtol=0)


def test_neighbours_by_position_are_near_along_the_path():
    z = embedded(PositionEmbedder(), path(200), 200)
    source, target = knn_graph(z, 4, seed=0)
    assert (source - target).abs().max() <= 5


def test_cosines_on_the_sphere_are_distances():
    rows = random(60, 3)
    z = on_a_sphere(rows)
    p = rows - rows.mean(0)
    p = p / p.norm(dim=1).max()
    wide = 1 + p.square().sum(1)
    far = torch.cdist(p, p).square()
    torch.testing.assert_close(z @ z.t(), 1 - 2 * far / (wide[:, None] * wide))


def test_equal_rows_stay_finite_on_the_sphere():
    assert on_a_sphere(torch.ones(4, 2)).isfinite().all()
