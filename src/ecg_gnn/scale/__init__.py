"""Graphs that do not fit: training by batches.

``BatchTraining`` is a training like any other to the loop of ``ecg_gnn.train``. Its
batches are neighbourhoods in all graphs at once, its scores are exact.
"""

from ecg_gnn.scale.batch_training import Batching as Batching
from ecg_gnn.scale.batch_training import BatchTraining as BatchTraining
from ecg_gnn.scale.layerwise_inference import LayerwiseInference as LayerwiseInference
from ecg_gnn.scale.sampler import SAMPLER_NAME as SAMPLER_NAME
