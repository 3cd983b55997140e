import pickle
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.data import load_dataset, make_dataset
from ecg_gnn.data.graph_checks import canonical_edge_index
from ecg_gnn.system.checks import InputError


def make(arrays, **options):
    masks = tuple(arrays[f"{part}_masks"] for part in ("train", "val", "test"))
    return make_dataset(
        name="toy",
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        masks=masks,
        **options,
    )


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=40),
    directed=st.booleans(),
)
def test_edges_match_a_set(pairs, directed):
    expected = {(u, v) for u, v in pairs if u != v}
    if not directed:
        expected |= {(v, u) for u, v in expected}
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    got = canonical_edge_index(edges, 9, directed)
    assert got.dtype == torch.int64
    assert [tuple(pair) for pair in got.t().tolist()] == sorted(expected)


def test_counts_types_and_splits(arrays):
    dataset = make(arrays)
    assert (dataset.num_nodes, dataset.num_features, dataset.num_splits) == (24, 3, 2)
    assert dataset.num_edges * 2 == dataset.edge_index.size(1)
    assert make(arrays, directed=True).num_edges <= len(arrays["edges"])
    assert (dataset.x.dtype, dataset.y.dtype) == (torch.float32, torch.int64)
    assert dataset.metric == "roc_auc"
    split = dataset.split(1)
    assert split.index == 1
    assert split.val_mask.tolist() == arrays["val_masks"][1].tolist()


# PyG still compiles with torch.jit when it is imported; nothing we can change.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is:DeprecationWarning")
def test_as_pyg_data(arrays):
    data = make(arrays).data()
    assert data.num_nodes == 24
    assert data.is_undirected()
    data.validate()


@pytest.mark.parametrize("index", [-1, 2])
def test_split_out_of_range(arrays, index):
    with pytest.raises(InputError, match=rf"must be in \[0, 1\] \(got {index}\)"):
        make(arrays).split(index)


def test_metric(arrays_of):
    assert make(arrays_of(), metric="accuracy").metric == "accuracy"
    three = arrays_of(num_classes=3)
    assert make(three).metric == "accuracy"
    with pytest.raises(InputError, match=r"roc_auc must have exactly 2 .*\(got 3\)"):
        make(three, metric="roc_auc")
    with pytest.raises(InputError, match="'metric' must be one of"):
        make(three, metric="f1")


def test_checksum_is_of_the_contents(arrays):
    first, again = make(arrays).sha256, make(arrays).sha256
    assert first == again
    arrays["node_features"][0, 0] += 1
    assert make(arrays).sha256 != first


def test_the_callers_arrays_stay_the_callers(arrays):
    dataset = make(arrays)
    before = dataset.x.clone()
    arrays["node_features"][:] = 0
    assert torch.equal(dataset.x, before)


def test_read_only_arrays_and_tensors_are_fine(arrays):
    for array in arrays.values():
        array.setflags(write=False)
    dataset = make(arrays)
    tensors = {key: torch.from_numpy(array.copy()) for key, array in arrays.items()}
    assert make(tensors).sha256 == dataset.sha256


def test_random_splits_change_masks_checksum_and_note(arrays):
    dataset = make(arrays, note="a note", sha256="of a file")
    fresh = dataset.with_random_splits(4, seed=3)
    assert fresh.num_splits == 4
    assert torch.equal(fresh.x, dataset.x)
    assert fresh.sha256 != dataset.sha256
    assert fresh.note == "a note; 4 random splits from seed 3"
    assert fresh.sha256 == dataset.with_random_splits(4, seed=3).sha256
    assert fresh.sha256 != dataset.with_random_splits(4, seed=4).sha256


def test_no_edges_is_a_graph(arrays):
    arrays["edges"] = np.zeros((0, 2), dtype=np.int64)
    assert make(arrays).edge_index.shape == (2, 0)


def test_workers_get_the_graph_itself_and_ask_nobody_for_it(arrays):
    """Torch shares memory by a server, and a worker of a killed process finds none."""
    dataset = make(arrays)
    sent = bytes(ForkingPickler.dumps(dataset))
    assert b"torch" not in sent
    there = pickle.loads(sent)
    assert vars(there).keys() == vars(dataset).keys()
    for name, value in vars(dataset).items():
        same = torch.equal if isinstance(value, torch.Tensor) else type(value).__eq__
        assert same(vars(there)[name], value), name
    assert there.x.dtype == dataset.x.dtype


def test_arrays_that_cannot_be_written_to_become_tensors_of_its_own(recwarn):
    graph, buffers = load_dataset("csbm:nodes=30"), []
    sent = pickle.dumps(graph, protocol=5, buffer_callback=buffers.append)
    memory = [bytes(each.raw()) for each in buffers]
    received = pickle.loads(sent, buffers=memory)
    assert buffers
    assert not recwarn
    received.x.add_(1)
    assert torch.equal(received.x, graph.x + 1)
