"""Settings of training by batches, and that runs without them keep their names."""

import pytest

from ecg_gnn.config import RunConfig, TrainConfig
from ecg_gnn.data import load_dataset
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.system.checks import InputError
from small_runs import BOARD


@pytest.mark.parametrize(
    ("fanout", "num_graphs", "expected"),
    [
        ((10,), 1, (10,)),
        ((10,), 3, (10, 10, 10)),
        ((15, 5), 1, (15,)),
        ((15, 5), 4, (15, 5, 5, 5)),
        ((-1, 3), 2, (-1, 3)),
    ],
)
def test_fanouts_of_graphs(fanout, num_graphs, expected):
    assert TrainConfig(batch_size=8, fanout=fanout).fanouts(num_graphs) == expected


def test_full_batch_runs_keep_their_names():
    plain = RunConfig().to_dict()["train"]
    assert not {"batch_size", "fanout", "eval_every"} & set(plain)
    batches = RunConfig(train=TrainConfig(batch_size=64, fanout=(5,)))
    assert batches.to_dict()["train"]["batch_size"] == 64
    assert batches.run_id("x") != RunConfig().run_id("x")
    assert RunConfig.from_dict(batches.to_dict()) == batches


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": -1}, r"'batch_size' must be in \[0, inf\) \(got -1\)"),
        ({"batch_size": 8, "fanout": (0,)}, r"'fanout' must be -1 .* \(got \[0\]\)"),
        ({"batch_size": 8, "fanout": ()}, r"'fanout' must be -1 .* \(got \[\]\)"),
        ({"batch_size": 8, "eval_every": 0}, r"'eval_every' must be in \[1, inf\)"),
        ({"fanout": (5,)}, r"'batch_size' must be at least 1 with 'fanout'"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**settings)


def test_whole_networks_have_no_batches():
    config = RunConfig.from_dict(
        {"dataset": BOARD, "model": {"name": "linkx"}, "train": {"batch_size": 8}}
    )
    with pytest.raises(InputError, match=r"'batch_size' must be 0 for the model 'link"):
        resolve(config, load_dataset(BOARD))
