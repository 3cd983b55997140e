"""The command that computes one unit again, alone."""

import shlex

from ecg_gnn.config import RunConfig
from ecg_gnn.config.dotted import given
from ecg_gnn.study.store import Configuration

_OPTIONS = {
    "dataset": "--dataset",
    "engine": "--engine",
    "random_splits": "--random-splits",
    "embed.names": "--embedding",
    "embed.layers": "--embed-layers",
    "embed.hidden": "--embed-hidden",
    "embed.steps": "--embed-steps",
    "embed.lr": "--embed-lr",
    "embed.cross_fit": "--cross-fit",
    "embed.cross_fit_models": "--cross-fit-models",
    "evolve.k": "--k",
    "evolve.self_loops": "--self-loops",
    "evolve.similarity": "--similarity",
    "evolve.symmetric": "--symmetric",
    "evolve.weights": "--edge-weights",
    "evolve.knn": "--knn",
    "model.name": "--model",
    "model.backbone": "--backbone",
    "model.layers": "--layers",
    "model.hidden": "--hidden",
    "model.dropout": "--dropout",
    "model.drop_edge": "--drop-edge",
    "model.norm": "--norm",
    "model.gate": "--gate",
    "model.evolved_layers": "--evolved-layers",
    "train.steps": "--steps",
    "train.lr": "--lr",
    "train.weight_decay": "--weight-decay",
    "train.precision": "--precision",
    "train.label_input": "--label-input",
}


def run_command(configuration: Configuration, split: int, seed: int = 0) -> str:
    """``ecg-gnn run`` with every setting of a unit.

    It also trains what the variant is compared with. Settings that have no option of
    their own follow after a #: they go into a file for ``--config``.
    """
    settings = given(RunConfig.from_dict(configuration.config))
    settings |= {"model.name": configuration.model}
    settings |= {"dataset": configuration.config["dataset"]}
    settings |= {"embed.names": configuration.embedding or "none"}
    words, rest = ["ecg-gnn", "run"], []
    for name, value in settings.items():
        if name == "model.options":
            for option, inner in value.items():
                words += ["--set", f"{option}={inner}"]
        elif name not in _OPTIONS:
            rest.append(f"{name}={value}")
        elif value is True:
            words.append(_OPTIONS[name])
        else:
            words += [_OPTIONS[name], str(value)]
    words += ["--splits", str(split), "--seed", str(seed)]
    command = shlex.join(words)
    return f"{command}  # {', '.join(rest)}" if rest else command
