"""Networks made for graphs where neighbours disagree, by name."""

from importlib import import_module

from ecg_gnn.config import networks
from ecg_gnn.nn.specialised.base import SpecialisedNet as SpecialisedNet

SPECIALISED: dict[str, type[SpecialisedNet]] = {
    name: getattr(import_module(f"{__name__}.{module}"), kind)
    for name, place in networks.SPECIALISED.items()
    for module, kind in [place.split(":")]
}
