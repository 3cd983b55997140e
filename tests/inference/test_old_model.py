"""A model folder that version 0.1 wrote is read, and predicts what it predicted."""

import csv
from pathlib import Path

import numpy as np

from ecg_gnn.inference import predict_stored, read_model

HERE = Path(__file__).parent


def test_a_folder_of_the_first_version_predicts_the_same():
    model = read_model(HERE / "model_of_0_1")
    predictions = predict_stored(model, every=True)
    with (HERE / "model_of_0_1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert predictions.ids == tuple(row["id"] for row in rows)
    expected = [[float(row[f"p_{name}"]) for name in model.classes] for row in rows]
    assert np.allclose(predictions.probabilities, expected, atol=1e-12)
