"""Graphs that do not fit: training by batches, in several processes if need be.

``BatchTraining`` is a training like any other to the loop of ``ecg_gnn.train``. Its
batches are neighbourhoods in all graphs at once, its scores are exact.
"""

from ecg_gnn.scale.batch_training import Batching, BatchTraining
from ecg_gnn.scale.layerwise_inference import LayerwiseInference
from ecg_gnn.scale.memory_advice import Advice, Step, explaining
from ecg_gnn.scale.processes import (
    World,
    all_have,
    first_goes_first,
    joined,
    wait_for_all,
    world,
)
from ecg_gnn.scale.sampler import SAMPLER_NAME, GraphSampler

__all__ = [
    "SAMPLER_NAME",
    "Advice",
    "BatchTraining",
    "Batching",
    "GraphSampler",
    "LayerwiseInference",
    "Step",
    "World",
    "all_have",
    "explaining",
    "first_goes_first",
    "joined",
    "wait_for_all",
    "world",
]
