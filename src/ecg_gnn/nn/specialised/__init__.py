"""Networks made for graphs where neighbours disagree, by name."""

from importlib import import_module

from ecg_gnn.config import networks
from ecg_gnn.nn.specialised.base import SpecialisedNet as SpecialisedNet
<<<<<<< HEAD

SPECIALISED: dict[str, type[SpecialisedNet]] = {
    name: getattr(import_module(f"{__name__}.{module}"), kind)
    for name, place in networks.SPECIALISED.items()
    for module, kind in [place.split(":")]
=======
from ecg_gnn.nn.specialised.cpgnn import CPGNN
from ecg_gnn.nn.specialised.gated_messages import ACMGNN, FAGCN, GBKGNN
from ecg_gnn.nn.specialised.geom_gcn import GeomGCN
from ecg_gnn.nn.specialised.ggcn import GGCN
from ecg_gnn.nn.specialised.h2gcn import H2GCN
from ecg_gnn.nn.specialised.hop_filters import FSGNN, GPRGNN, JacobiConv
from ecg_gnn.nn.specialised.node_rows import LINKX, GloGNN
from ecg_gnn.nn.specialised.polynormer import Polynormer
from ecg_gnn.nn.specialised.wrgat import WRGAT

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
    "ggcn": GGCN,
    "wrgat": WRGAT,
    "geom-gcn": GeomGCN,
>>>>>>> 570bfd9 (The networks of the paper's related work: GGCN, WRGAT and Geom-GCN)
}
