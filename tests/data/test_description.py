import json

import numpy as np
import pytest
import torch

from ecg_gnn.data import CATALOGUE, csbm, describe, list_datasets, load_dataset
from ecg_gnn.data import make_dataset as make


def test_list_is_the_catalogue(tmp_path):
    (tmp_path / "squirrel_filtered.npz").touch()
    rows = list_datasets(tmp_path)
    assert [row["name"] for row in rows] == list(CATALOGUE)
    present = {row["name"] for row in rows if row["present"]}
    assert present == {"squirrel-filtered", "minesweeper-gen", "csbm", "look-alikes"}
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize("directed", [False, True])
def test_describe_by_hand(directed):
    # A path 0-1-2, an edge 3-4, seven isolated nodes.
    x = torch.arange(24.0).view(12, 2)
    x[5] = x[4]
    x[6], x[7] = torch.tensor([0.0, -0.0]), torch.tensor([-0.0, 0.0])
    told = describe(
        make(
            name="hand",
            x=x,
            y=np.arange(12) % 3,
            edges=np.array([[0, 1], [1, 2], [3, 4]]),
            num_splits=1,
            directed=directed,
            note="n",
        )
    )
    assert (told["nodes"], told["edges"], told["features"]) == (12, 3, 2)
    assert told["class_counts"] == [4, 4, 4]
    assert told["splits"] == [{"train": 6, "val": 3, "test": 3}]
    assert (told["isolated_nodes"], told["connected_components"]) == (7, 9)
    assert told["degree"] == {"min": 0, "median": 0.0, "max": 2}
    assert told["duplicate_feature_rows"] == 2
    assert (told["metric"], told["directed"]) == ("accuracy", directed)
    assert (told["note"], len(told["sha256"])) == ("n", 64)


def test_description_is_json():
    told = describe(csbm(nodes=60, degree=0.0))
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["isolated_nodes"] == told["connected_components"] == 60


@pytest.mark.dataset
def test_describe_real_graph(data_root):
    told = describe(load_dataset("minesweeper", data_root=data_root))
    assert told["degree"] == {"min": 3, "median": 8.0, "max": 8}
    assert told["connected_components"] == 1
    assert told["duplicate_feature_rows"] == 10_000 - 7
