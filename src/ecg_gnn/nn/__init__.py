"""STEP 3: standard GNN layers on several graphs in parallel, projected together."""

from ecg_gnn.nn.benchmark_net import Dropout as Dropout
from ecg_gnn.nn.ecg_conv import ECGConv as ECGConv
from ecg_gnn.nn.models import build_network as build_network
from ecg_gnn.nn.models import graph_inputs as graph_inputs
from ecg_gnn.nn.models import read_options as read_options
from ecg_gnn.nn.models import traits_of as traits_of
from ecg_gnn.nn.network import GraphInput as GraphInput
from ecg_gnn.nn.network import LayeredNetwork as LayeredNetwork
from ecg_gnn.nn.network import Network as Network
from ecg_gnn.nn.network import NetworkSpec as NetworkSpec
from ecg_gnn.nn.specialised import SPECIALISED as SPECIALISED
