"""Graphs that do not fit: training by batches, in several processes if need be.

``BatchTraining`` is a training like any other to the loop of ``ecg_gnn.train``. Its
batches are neighbourhoods in all graphs at once, its scores are exact.
"""

from ecg_gnn.scale.batch_training import Batching as Batching
from ecg_gnn.scale.batch_training import BatchTraining as BatchTraining
from ecg_gnn.scale.layerwise_inference import LayerwiseInference as LayerwiseInference
from ecg_gnn.scale.memory_advice import Advice as Advice
from ecg_gnn.scale.memory_advice import Step as Step
from ecg_gnn.scale.memory_advice import explaining as explaining
from ecg_gnn.scale.processes import World as World
from ecg_gnn.scale.processes import all_have as all_have
from ecg_gnn.scale.processes import first_goes_first as first_goes_first
from ecg_gnn.scale.processes import joined as joined
from ecg_gnn.scale.processes import wait_for_all as wait_for_all
from ecg_gnn.scale.processes import world as world
from ecg_gnn.scale.sampler import SAMPLER_NAME as SAMPLER_NAME
from ecg_gnn.scale.sampler import GraphSampler as GraphSampler
