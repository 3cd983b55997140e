import numpy as np
import pytest
import torch

from ecg_gnn.data import csbm, load_dataset
from ecg_gnn.data.generators import (
    king_grid,
    look_alikes,
    minesweeper_features,
    minesweeper_gen,
)
from ecg_gnn.system.checks import InputError


def test_board_by_hand():
    # . . *      neighbouring mines   1 2 1
    # . * .                           1 1 2
    # . . .                           1 1 1
    y = np.array([0, 0, 1, 0, 1, 0, 0, 0, 0])
    edges = king_grid(3, 3)
    x = minesweeper_features(edges, y, np.array([8]))
    assert x.argmax(axis=1).tolist() == [2, 3, 2, 2, 2, 3, 2, 2, 0]
    assert (x.sum(axis=1) == 1).all()
    assert len(edges) == 20


def test_five_and_more_mines_share_a_column():
    x = minesweeper_features(king_grid(3, 3), np.ones(9, dtype=int), np.array([], int))
    assert x.shape == (9, 7)
    # Corners see three mines, sides five, the middle eight.
    assert x.argmax(axis=1).tolist() == [4, 6, 4, 6, 6, 6, 4, 6, 4]


@pytest.mark.parametrize(("rows", "cols"), [(1, 9), (7, 1), (4, 6)])
def test_grid_is_all_kings_moves(rows, cols):
    cells = [(r, c) for r in range(rows) for c in range(cols)]
    expected = {
        (i, j)
        for i, (r, c) in enumerate(cells)
        for j, (s, d) in enumerate(cells)
        if i < j and max(abs(r - s), abs(c - d)) == 1
    }
    got = [tuple(sorted(pair)) for pair in king_grid(rows, cols).tolist()]
    assert len(got) == len(expected)
    assert set(got) == expected


def test_minesweeper_counts():
    dataset = minesweeper_gen(20, 30, mines=0.15, unknown=0.4, seed=5)
    assert int(dataset.y.sum()) == 90
    assert int(dataset.x[:, 0].sum()) == 240
    assert dataset.metric == "roc_auc"
    assert (
        dataset.name == "minesweeper-gen:rows=20,cols=30,mines=0.15,unknown=0.4,seed=5"
    )
    assert dataset.num_splits == 10


@pytest.mark.dataset
def test_official_features_are_labels_and_hidden_cells(data_root):
    official = load_dataset("minesweeper", data_root=data_root)
    made = minesweeper_gen(100, 100)
    assert torch.equal(official.edge_index, made.edge_index)
    hidden = np.flatnonzero(official.x[:, 0].numpy())
    rebuilt = minesweeper_features(king_grid(100, 100), official.y.numpy(), hidden)
    assert torch.equal(official.x, torch.from_numpy(rebuilt))
    assert torch.equal(official.y.bincount(), made.y.bincount())
    assert official.x[:, 0].sum() == made.x[:, 0].sum() == 5000
    # The other columns are counts of chance: five standard deviations at most.
    expected = official.x.sum(dim=0)
    spread = 5 * (2 * expected * (1 - expected / 10_000)).sqrt()
    assert ((made.x.sum(dim=0) - expected).abs() <= spread).all()


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("homophily", [0.0, 0.2, 0.75, 1.0])
def test_csbm_homophily_and_degree(classes, homophily):
    dataset = csbm(nodes=3000, classes=classes, homophily=homophily, seed=1)
    source, target = dataset.edge_index
    same = (dataset.y[source] == dataset.y[target]).float().mean()
    # 15,000 edges: five standard errors are 0.02.
    assert abs(float(same) - homophily) < 0.02
    assert 0.97 * 15_000 < dataset.num_edges <= 15_000
    assert dataset.y.bincount().tolist() == [3000 // classes] * classes


def test_csbm_reaches_every_pair_and_no_self_loop():
    seen = torch.zeros(30, 30, dtype=torch.bool)
    for seed in range(150):
        made = csbm(nodes=30, classes=3, degree=4.0, homophily=0.5, seed=seed)
        seen[made.edge_index[0], made.edge_index[1]] = True
    assert torch.equal(seen, ~torch.eye(30, dtype=torch.bool))


def test_csbm_features_have_the_asked_signal():
    dataset = csbm(nodes=20_000, classes=2, features=8, signal=3.0, degree=1.0)
    for label in (0, 1):
        rows = dataset.x[dataset.y == label]
        assert rows.mean(dim=0).norm().item() == pytest.approx(3, abs=0.1)
        assert rows.std().item() == pytest.approx(
            (1 + rows.mean(dim=0).var(correction=0).item()) ** 0.5, abs=0.05
        )


def test_look_alikes_are_near_each_other_and_of_one_class():
    made = look_alikes(nodes=600, classes=3, group=20, signal=12.0, homophily=0.3)
    nearest = torch.cdist(made.x, made.x).fill_diagonal_(torch.inf)
    near = nearest.topk(19, largest=False).indices
    assert (made.y[near] == made.y[:, None]).float().mean() > 0.99
    # A class has several groups: most of its nodes are not alike.
    same = made.y[:, None] == made.y
    assert same.float().sum(1).mean() == pytest.approx(200, abs=5)
    source, target = made.edge_index
    agree = (made.y[source] == made.y[target]).float().mean()
    assert agree == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("generator", [minesweeper_gen, csbm, look_alikes])
def test_seed_decides_everything(generator):
    first, again, other = generator(), generator(), generator(seed=1)
    assert first.sha256 == again.sha256
    assert first.sha256 != other.sha256
    assert not torch.equal(first.y, other.y)
    few = generator(num_splits=3)
    assert torch.equal(few.x, first.x)
    assert torch.equal(few.train_masks, first.train_masks[:3])


def test_the_name_makes_the_graph_again():
    for made in (csbm(nodes=90, degree=4, seed=2), minesweeper_gen(9, 9, seed=3)):
        assert load_dataset(made.name).sha256 == made.sha256
    assert csbm().name == "csbm"


@pytest.mark.parametrize(
    ("generator", "options", "message"),
    [
        (minesweeper_gen, {"rows": 0}, r"'rows' must be in \[1, "),
        (minesweeper_gen, {"cols": 2.5}, r"'cols' must be a whole number \(got 2.5\)"),
        (minesweeper_gen, {"rows": True}, r"'rows' must be a whole number"),
        (minesweeper_gen, {"rows": 1, "cols": 2}, r"'rows \* cols' must be in \[6, "),
        (minesweeper_gen, {"rows": 10**6, "cols": 10**6}, r"'rows \* cols' must be in"),
        (minesweeper_gen, {"mines": 0.0}, r"'mines' must leave.*0 mines among 2500"),
        (minesweeper_gen, {"mines": 1.0}, r"'mines' must leave.*2500 mines"),
        (minesweeper_gen, {"mines": 1.5}, r"'mines' must be in \[0, 1\] \(got 1.5\)"),
        (minesweeper_gen, {"unknown": -1}, r"'unknown' must be in \[0, 1\]"),
        (minesweeper_gen, {"num_splits": 0}, r"'num_splits' must be in \[1, inf\)"),
        (csbm, {"nodes": 5}, r"'nodes' must be in \[6, "),
        (csbm, {"nodes": 10**12}, r"'nodes' must be in \[6, 50000000\]"),
        (csbm, {"classes": 1}, r"'classes' must be in \[2, "),
        (csbm, {"features": 0}, r"'features' must be in \[1, "),
        (csbm, {"degree": -1.0}, r"'degree' must be in \[0, 1999\] \(got -1.0\)"),
        (csbm, {"degree": float("nan")}, r"'degree' must be in .*\(got nan\)"),
        (csbm, {"homophily": 1.1}, r"'homophily' must be in \[0, 1\]"),
        (csbm, {"signal": float("inf")}, r"'signal' must be in"),
        (look_alikes, {"group": 0}, r"'group' must be in \[1, 1000\]"),
        (look_alikes, {"group": 1500}, r"'group' must be in \[1, 1000\] \(got 1500\)"),
        (look_alikes, {"classes": 0}, r"'classes' must be in"),
    ],
)
def test_wrong_parameters(generator, options, message):
    with pytest.raises(InputError, match=message):
        generator(**options)


@pytest.mark.slow
def test_csbm_of_a_million_nodes():
    dataset = csbm(nodes=1_000_000, degree=20.0, num_splits=1)
    assert dataset.num_edges > 9_990_000
