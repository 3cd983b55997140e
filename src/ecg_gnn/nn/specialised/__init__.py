"""Networks made for graphs where neighbours disagree, by name."""

from importlib import import_module

from ecg_gnn.config import classify_settings as settings
from ecg_gnn.nn.specialised.base import SpecialisedNet as SpecialisedNet

SPECIALISED: dict[str, type[SpecialisedNet]] = {
    name: getattr(import_module(f"{__name__}.{module}"), kind)
    for name, place in settings.SPECIALISED.items()
    for module, kind in [place.split(":")]
}
