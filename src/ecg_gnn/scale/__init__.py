"""Graphs that do not fit: training by batches, in several processes if need be.

``BatchTraining`` is a training like any other to the loop of ``ecg_gnn.train``. Its
batches are neighbourhoods in all graphs at once, its scores are exact.
"""

from ecg_gnn.scale.advice import Advice, explaining
from ecg_gnn.scale.inference import LayerwiseInference
from ecg_gnn.scale.library import sampler_class, sampler_name
from ecg_gnn.scale.processes import (
    World,
    all_have,
    first_goes_first,
    joined,
    wait_for_all,
    world,
)
from ecg_gnn.scale.room import Step
from ecg_gnn.scale.sampler import GraphSampler
from ecg_gnn.scale.training import Batching, BatchTraining

__all__ = [
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
    "sampler_class",
    "sampler_name",
    "wait_for_all",
    "world",
]
