"""Networks made for graphs where neighbours disagree, by name."""

from ecg_gnn.nn.specialised.base import SpecialisedNet as SpecialisedNet
from ecg_gnn.nn.specialised.cpgnn import CPGNN
from ecg_gnn.nn.specialised.gated_messages import ACMGNN, FAGCN, GBKGNN
from ecg_gnn.nn.specialised.h2gcn import H2GCN
from ecg_gnn.nn.specialised.hop_filters import FSGNN, GPRGNN, JacobiConv
from ecg_gnn.nn.specialised.node_rows import LINKX, GloGNN
from ecg_gnn.nn.specialised.polynormer import Polynormer

SPECIALISED: dict[str, type[SpecialisedNet]] = {
    "h2gcn": H2GCN,
    "cpgnn": CPGNN,
    "gpr-gnn": GPRGNN,
    "fsgnn": FSGNN,
    "glognn": GloGNN,
    "fagcn": FAGCN,
    "gbk-gnn": GBKGNN,
    "jacobiconv": JacobiConv,
    "polynormer": Polynormer,
    "linkx": LINKX,
    "acm-gnn": ACMGNN,
}
