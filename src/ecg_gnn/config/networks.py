"""The networks of step 3 by name, and the classes that ``ecg_gnn.nn`` finds by them."""

from ecg_gnn.system.checks import InputError, check_choice, did_you_mean

MODULES = {
    "resnet": "ResNetModule",
    "gcn": "GCNModule",
    "sage": "SAGEModule",
    "tag": "TAGModule",
    "gat": "GATModule",
    "gat-sep": "GATSepModule",
    "gt": "GTModule",
    "gt-sep": "GTSepModule",
}
"""Of the benchmark backbone: classes in ``nn.benchmark_net``."""
TUNED_CONVS = {
    "gcn": "_TunedConv",
    "sage": "_TunedSAGE",
    "tag": "_TunedTAG",
    "gat": "_TunedGAT",
}
"""Of the tuned backbone: classes in ``nn.tuned_net``."""
SPECIALISED = {
    "h2gcn": "h2gcn:H2GCN",
    "cpgnn": "cpgnn:CPGNN",
    "gpr-gnn": "hop_filters:GPRGNN",
    "fsgnn": "hop_filters:FSGNN",
    "glognn": "node_rows:GloGNN",
    "fagcn": "gated_messages:FAGCN",
    "gbk-gnn": "gated_messages:GBKGNN",
    "jacobiconv": "hop_filters:JacobiConv",
    "polynormer": "polynormer:Polynormer",
    "linkx": "node_rows:LINKX",
    "acm-gnn": "gated_messages:ACMGNN",
    "ggcn": "ggcn:GGCN",
    "wrgat": "wrgat:WRGAT",
    "geom-gcn": "geom_gcn:GeomGCN",
}
"""Whole networks: ``module:class`` below ``nn.specialised``."""
BACKBONES = ("benchmark", "tuned")
BY_HOMOPHILY = "auto"
"""Stands for the model that a graph's homophily suggests."""


def model_names(backbone: str) -> list[str]:
    """The models a backbone offers; those of ``SPECIALISED`` are without one."""
    check_choice("backbone", backbone, BACKBONES)
    return list(MODULES if backbone == "benchmark" else TUNED_CONVS)


def selectable(backbone: str) -> list[str]:
    """The models that a run may name: a specialised one leaves the backbone alone."""
    more = SPECIALISED if backbone == "benchmark" else ()
    return [*model_names(backbone), *more]


def check_model(name: str, backbone: str) -> None:
    """Refuse a model that this backbone does not have."""
    allowed = selectable(backbone)
    if name not in (*allowed, BY_HOMOPHILY):
        mistyped = name not in selectable("benchmark")
        hint = did_you_mean(name, allowed) if mistyped else ""
        raise InputError(
            f"'model' must be one of {allowed} for the backbone {backbone!r} "
            f"(got {name!r}{hint})"
        )
