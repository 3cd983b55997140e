"""The recall of an approximate graph: in the record, in tables, and kept with it."""

import dataclasses
import json

import pytest
import torch

from ecg_gnn.config import EvolveConfig
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.evolve import EvolvedGraph, join_rows, share_rows
from ecg_gnn.pipeline import Workspace, evolve, method
from ecg_gnn.study import run, run_study
from ecg_gnn.study.records import RECALL, mean
from ecg_gnn.study.store import Store
from ecg_gnn.study.table import report_markdown, statistics_table
from small_runs import STATISTICS, resolved, small_board, small_config
from small_studies import small_recipe

pytest.importorskip("faiss")
IVF = EvolveConfig(k=3, knn="ivf")
EXACT = EvolveConfig(k=3)


def test_a_run_records_and_shows_it(tmp_path):
    config = small_config("mlp", splits=(0,), evolve=IVF)
    report = run(config, dataset=small_board(), out=tmp_path / "out")
    of_variant = {record.variant: record for record in report.records}
    (found,) = of_variant["ecg"].evolved_statistics
    assert 0.9 < found[RECALL] <= 1
    assert RECALL not in of_variant["identity"].evolved_statistics[0]
    assert report.to_dict()["homophily"]["evolved"]["mlp"][RECALL] == found[RECALL]
    header, (given, evolved) = statistics_table(report)
    assert (header[-1], given[-1]) == ("kNN recall", "")
    assert evolved[-1] == f"{found[RECALL]:.3f}"
    text = report_markdown(report)
    assert "G_ECG (mlp, approximate) is approximate: its search found" in text
    kept = json.loads((tmp_path / "out/records/ecg-mlp-split0.json").read_text())
    assert kept["evolved_statistics"][0][RECALL] == found[RECALL]


def test_exact_graphs_have_none():
    report = run(small_config("mlp", splits=(0,)), dataset=small_board())
    assert all(
        RECALL not in row for r in report.records for row in r.evolved_statistics
    )
    assert "kNN recall" not in statistics_table(report)[0]
    assert "approximate" not in report_markdown(report)


def test_a_study_keeps_it(tmp_path):
    wanted = {"models": ["gcn"], "splits": [0], "variants": ["mlp"]}
    recipe = small_recipe(settings={"evolve.knn": "hnsw"}, **wanted)
    run_study(recipe, tmp_path / "s.sqlite")
    with Store.open(tmp_path / "s.sqlite") as store:
        (record,) = [r for r in store.records() if r.configuration.variant == "ecg"]
    assert 0.9 < record.result.evolved_statistics[0][RECALL] <= 1
    assert record.configuration.tags == ("approximate",)


def test_it_is_kept_with_the_edges(tmp_path, monkeypatch):
    board, workspace = small_board(), Workspace(cache=EmbeddingCache(tmp_path))
    config = resolved(board, "mlp", evolve=IVF)
    arguments = ("mlp", board, board.split(0), config, workspace)
    first = evolve(*arguments)
    exact = dataclasses.replace(config, evolve=EXACT)
    assert evolve("mlp", board, board.split(0), exact, workspace).recall is None
    monkeypatch.setattr(method, "evolve_embedding", None)  # nothing is evolved again
    again = evolve(*arguments)
    assert again.recall == first.recall is not None
    assert torch.equal(again.edge_index, first.edge_index)


def test_cross_fitted_graphs_have_the_mean():
    board = small_board()
    config = resolved(board, "mlp", evolve=IVF)
    crossed = dataclasses.replace(
        config, embed=dataclasses.replace(config.embed, cross_fit=2)
    )
    assert evolve("mlp", board, board.split(0), crossed).recall is not None
    edges = torch.tensor([[0, 1], [1, 0]])
    pair = [EvolvedGraph(edges, None, recall) for recall in (0.5, 1.0)]
    assert join_rows(pair, torch.tensor([0, 1])).recall == 0.75
    assert join_rows(pair, torch.tensor([0, 0])).recall == 0.5  # the other gives none
    exact = EvolvedGraph(edges)
    assert join_rows([pair[0], exact], torch.tensor([0, 1])).recall == 0.75
    assert join_rows([exact, exact], torch.tensor([0, 1])).recall is None
    every = torch.tensor([True, True])
    shares = [(pair[1], every), (pair[0], every & torch.tensor([True, False]))]
    shared = share_rows(pair[0], shares, every)  # two edges of one, one of the other
    assert shared.recall == pytest.approx(5 / 6)
    assert shared.edge_index.tolist() == [[1, 1, 0], [0, 0, 1]]


def test_means_count_exact_graphs_as_complete():
    measured = dict.fromkeys(STATISTICS, 1.0)
    rows = [measured | {RECALL: 0.5}, measured]
    assert mean(rows)[RECALL] == mean(rows[::-1])[RECALL] == 0.75
    assert RECALL not in mean(rows[1:])
