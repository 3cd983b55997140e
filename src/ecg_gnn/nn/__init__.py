"""STEP 3: standard GNN layers on several graphs in parallel, projected together."""

from ecg_gnn.nn.benchmark_net import BenchmarkNet
from ecg_gnn.nn.build import BACKBONES, build_network, model_names, wants_self_loops
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.ecg_conv import ECGConv
from ecg_gnn.nn.modules import MODULES, FeedForward
from ecg_gnn.nn.network import Network
from ecg_gnn.nn.parallel import GraphInput, ParallelModules
from ecg_gnn.nn.tuned_net import TunedNet

__all__ = [
    "BACKBONES",
    "MODULES",
    "BenchmarkNet",
    "Dropout",
    "ECGConv",
    "FeedForward",
    "GraphInput",
    "Network",
    "ParallelModules",
    "TunedNet",
    "build_network",
    "model_names",
    "wants_self_loops",
]
