"""Features of nodes without columns."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.tabular.structure_features import structure_features


def standardised(values):
    values = np.array(list(values), dtype=float)
    return (values - values.mean()) / values.std()


@pytest.fixture(scope="module")
def graph():
    return nx.barabasi_albert_graph(200, 3, seed=0)


def test_measures_are_those_of_networkx(graph):
    x = structure_features(np.array(graph.edges), 200)
    assert x.shape == (200, 20)
    degree = np.array([graph.degree(n) for n in range(200)])
    assert np.allclose(x[:, 0], standardised(np.log1p(degree)), atol=1e-5)
    around = [np.mean(np.log1p(degree[list(graph[n])])) for n in range(200)]
    assert np.allclose(x[:, 1], standardised(around), atol=1e-5)
    rank = nx.pagerank(graph, tol=1e-12, max_iter=500)
    expected = standardised(np.log([rank[n] for n in range(200)]))
    assert np.allclose(x[:, 2], expected, atol=1e-3)
    clustering = [nx.clustering(graph, n) for n in range(200)]
    assert np.allclose(x[:, -1], standardised(clustering), atol=1e-5)


def test_eigenvectors_tell_communities_apart():
    graph = nx.planted_partition_graph(2, 60, 0.3, 0.01, seed=0)
    x = structure_features(np.array(graph.edges), 120)
    second = x[:, 4]  # the first is the degree's
    assert (np.sign(second[:60]) != np.sign(second[60:])).mean() > 0.95


def test_repeats_directions_and_loops_change_nothing(graph):
    pairs = np.array(graph.edges)
    more = np.vstack([pairs, pairs[:, ::-1], pairs[:9], [[5, 5]]])
    assert np.array_equal(structure_features(pairs, 200), structure_features(more, 200))


@settings(max_examples=50, deadline=None)
@given(
    st.integers(2, 30).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), min_size=1)
        )
    )
)
def test_any_graph_gets_finite_features(sizes):
    num_nodes, pairs = sizes
    x = structure_features(np.array(pairs), num_nodes)
    assert x.dtype == np.float32
    assert len(x) == num_nodes
    assert np.isfinite(x).all()
