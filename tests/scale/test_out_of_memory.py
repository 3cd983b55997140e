"""Memory that really runs out: every stage says what to lower."""

import os
import re
import subprocess
import sys

import pytest

import starved
from batch_trainings import plain_task, training_of
from ecg_gnn.scale import LayerwiseInference
from ecg_gnn.train import train_together

FITS = r"does not fit into the [\d.]+ [MG]iB that are left on cpu: "
SAYS = {
    "mlp": rf"the mlp embedding of 8000 nodes {FITS}lower --embed-hidden \(now 512\)",
    "bgrl": rf"the bgrl embedding of 8000 nodes {FITS}lower --embed-hidden ",
    "full batch": rf"a step of 8000 nodes {FITS}train by batches ",
    "batches": rf"a step of \d+ nodes {FITS}lower --batch-size \(now 4000\), --fanout",
    "inference": rf"evaluating 8000 nodes .* {FITS}lower --hidden",
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory differ elsewhere")
def test_every_stage_says_what_to_lower():
    done = subprocess.run(
        [sys.executable, starved.__file__],
        # What is freed goes back at once: else later stages would find room there.
        env=os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    said = [line.split("\t") for line in done.stdout.splitlines()]
    assert [name for name, *_ in said] == list(SAYS)
    for name, kind, message in said:
        assert kind == "MemoryError", message
        assert re.match(SAYS[name], message), message


def test_an_evaluation_is_not_blamed_on_the_batch(monkeypatch):
    def run_out(_):
        raise MemoryError

    monkeypatch.setattr(LayerwiseInference, "logits", run_out)
    training = training_of(plain_task())
    message = r"^evaluating 40 nodes .* are left on cpu: lower --hidden$"
    with pytest.raises(MemoryError, match=message):
        train_together([training])
