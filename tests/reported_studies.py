"""Stores with something to report: gains, losses, failures, hostile names."""

from small_runs import STATISTICS
from small_studies import HandmadeStore, dataset_info

HOSTILE = "<script>alert('x')</script>\"&\u2028"
SPLITS = [0.0, 0.01, 0.02, -0.01]


def around(mean, step=0.0005):
    """A score per split; splits are equally hard for everybody, up to a little."""
    return [mean + split + step * (i % 2) for i, split in enumerate(SPLITS)]


def fill(path, *, hostile=False):
    """Two datasets; ECG is above identity on gcn, below it on sage; one failure."""
    made = HandmadeStore(path)
    official = dataset_info()
    own = dataset_info(
        HOSTILE if hostile else "own-graph", "1" * 64, HOSTILE if hostile else "a note"
    )
    for dataset in (official, own):
        for model, ecg, control in (("gcn", 0.92, 0.90), ("sage", 0.92, 0.94)):
            add = {"dataset": dataset, "model": model}
            made.add(around(0.8975, 0), **add)
            made.add(around(ecg), embedding="mlp", **add, **{"evolve.k": 3})
            made.add(around(0.95), vals=around(0.5), embedding="bgrl", **add)
            made.add(around(control, 0.0007), embedding="identity", **add)
    made.add(
        [None],
        dataset=official,
        model="gat",
        embedding="bgrl",
        statistics=dict.fromkeys(STATISTICS),
    )
    fail_the_rest(made, HOSTILE if hostile else "first line\nCUDA is full")
    made.writer.close()
    return path


def fail_the_rest(made, error):
    """Whatever is not finished has failed."""
    query = "SELECT id FROM units WHERE state = 'missing'"
    for row in list(made.writer._connection.execute(query)):
        made.writer.fail(row["id"], "out_of_memory", error, {"device": "cuda"})
