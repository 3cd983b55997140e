"""STEP 3: standard GNN layers on several graphs in parallel, projected together."""

from ecg_gnn.nn.benchmark_net import BenchmarkNet
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.ecg_conv import ECGConv
from ecg_gnn.nn.models import (
    BACKBONES,
    build_network,
    model_names,
    read_options,
    selectable,
    takes_evolved_graphs,
    takes_gate,
    takes_labels,
    takes_weights,
    wants_self_loops,
)
from ecg_gnn.nn.modules import MODULES, FeedForward
from ecg_gnn.nn.network import Known, LayeredNetwork, Network, NetworkSpec
from ecg_gnn.nn.parallel import GraphInput, NodeGate, ParallelModules
from ecg_gnn.nn.specialised import SPECIALISED
from ecg_gnn.nn.tuned_net import TunedNet

__all__ = [
    "BACKBONES",
    "MODULES",
    "SPECIALISED",
    "BenchmarkNet",
    "Dropout",
    "ECGConv",
    "FeedForward",
    "GraphInput",
    "Known",
    "LayeredNetwork",
    "Network",
    "NetworkSpec",
    "NodeGate",
    "ParallelModules",
    "TunedNet",
    "build_network",
    "model_names",
    "read_options",
    "selectable",
    "takes_evolved_graphs",
    "takes_gate",
    "takes_labels",
    "takes_weights",
    "wants_self_loops",
]
