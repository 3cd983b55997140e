"""Networks made for graphs where neighbours disagree, one file each, by name."""

from ecg_gnn.nn.specialised.acm_gnn import ACMGNN
from ecg_gnn.nn.specialised.base import SpecialisedNet
from ecg_gnn.nn.specialised.cpgnn import CPGNN
from ecg_gnn.nn.specialised.fagcn import FAGCN
from ecg_gnn.nn.specialised.fsgnn import FSGNN
from ecg_gnn.nn.specialised.gbk_gnn import GBKGNN
from ecg_gnn.nn.specialised.glognn import GloGNN
from ecg_gnn.nn.specialised.gpr_gnn import GPRGNN
from ecg_gnn.nn.specialised.h2gcn import H2GCN
from ecg_gnn.nn.specialised.jacobi_conv import JacobiConv
from ecg_gnn.nn.specialised.linkx import LINKX
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

__all__ = ["SPECIALISED", "SpecialisedNet"]
