"""What a run says in words: whose gain it is, and when too little was tried."""

import itertools
import json
import runpy
import sys
from dataclasses import replace

import pytest

from documented import ROOT
from ecg_gnn.study import run
from ecg_gnn.study.verdict import VERDICTS, judge, verdict
from small_runs import small_config


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ((1, 1, 1), "edges"),
        ((1, 1, 0), "vectors"),
        ((1, 1, -1), "vectors"),
        ((1, 1), "unasked"),
        ((1, 0, 1), "path"),
        ((1, -1, 1), "beaten"),
        ((1,), "alone"),
        ((0, 1, 1), "open"),
        ((-1, 1, 1), "worse"),
    ],
)
def test_a_gain_is_the_edges_only_above_all_three(signs, expected):
    rivals = ("baseline", "identity", "embedding")
    assert judge(dict(zip(rivals, signs, strict=False))) == expected


def test_every_outcome_has_words():
    outcomes = itertools.product((-1, 0, 1), repeat=3)
    rivals = ("baseline", "identity", "embedding")
    found = {judge(dict(zip(rivals, each, strict=True))) for each in outcomes}
    assert found == VERDICTS.keys() - {"alone", "unasked"}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run(small_config("mlp"), out=tmp_path_factory.mktemp("run"))


def with_differences(report, mean, low, high):
    rows = [
        replace(row, mean_difference=mean, ci_low=low, ci_high=high)
        for row in report.comparisons
    ]
    return replace(report, comparisons=rows)


def test_a_verdict_follows_the_intervals(report):
    (clear, few) = verdict(with_differences(report, 0.1, 0.01, 0.2))
    assert clear.endswith("both controls: the new edges help.")
    assert few == "2 splits are too few to tell: try more, --splits 0-4."
    said, _ = verdict(with_differences(report, 0.1, -0.1, 0.3))
    assert "too close to the plain network to call" in said
    many = replace(report, config=replace(report.config, splits=(0, 1, 2, 3, 4)))
    assert len(verdict(many)) == 1
    assert verdict(run(small_config("none"))) == []
    assert verdict(run(small_config("identity"))) == [few]  # a control alone, too


def test_a_gain_of_further_features_beside_edges_has_words(report):
    # Vectors that are input already have no control of their own.
    mixed = "mlp,input:features"
    found = with_differences(report, 0.1, 0.01, 0.2)
    rows = [replace(row, embedding=mixed) for row in found.comparisons]
    found = replace(
        found,
        comparisons=[row for row in rows if row.against != "embedding"],
        results=[replace(row, embedding=mixed) for row in found.results],
    )
    assert VERDICTS["unasked"] in verdict(found)[0]


def test_one_split_has_no_interval():
    said, few = verdict(run(small_config("mlp", splits=(0,))))
    assert "too close" in said
    assert few.startswith("One split is too few")


def test_one_picture_of_two_runs(report, tmp_path, monkeypatch, capsys):
    out = tmp_path / "answers.svg"
    folder = str(report.folder)
    monkeypatch.setattr(sys, "argv", ["two_answers", folder, folder, "--out", str(out)])
    runpy.run_path(str(ROOT / "docs/tools/two_answers.py"), run_name="__main__")
    found = json.loads((report.folder / "results.json").read_text())["comparisons"]
    drawn, told = out.read_text(), capsys.readouterr().out
    assert len(told.splitlines()) == 2
    for row in found[:3]:
        number = f"{100 * row['mean_difference']:+.1f}".replace("-", "−")
        assert number in drawn
        assert number in told
