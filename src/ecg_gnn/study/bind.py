"""From plans to units: graphs are loaded, settings resolved, everything named."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.dotted import replaced
from ecg_gnn.config.identity import Purpose, canonical, configuration_id, unit_id
from ecg_gnn.config.variants import Variant
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.pipeline.preflight import check_embeddings
from ecg_gnn.pipeline.workspace import Workspace, make_embedder
from ecg_gnn.study.datasets import why_absent
from ecg_gnn.study.expand import Plan
from ecg_gnn.study.run import prepare
from ecg_gnn.study.statistics import plain
from ecg_gnn.study.store import Configuration, DatasetInfo
from ecg_gnn.study.store.writer import NewUnit
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import default_precision

OnSkipped = Callable[[str, str], None]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The splits of one configuration and one seed: what is trained together."""

    task: Purpose
    configuration: Configuration
    config: RunConfig
    """Resolved for this machine, splits and seed included"""
    variant: Variant
    dataset: GraphDataset
    """With the splits that are used"""
    units: dict[int, str]
    """Every split's unit"""

    def new_units(self) -> list[NewUnit]:
        """The units as the store wants to know them."""
        name, seed = self.configuration.id, self.config.seed
        return [
            NewUnit(id=unit, configuration=name, split=split, seed=seed)
            for split, unit in self.units.items()
        ]


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """The graphs of a recipe that are here."""

    loaded: dict[str, GraphDataset]
    """As the recipe names them"""
    skipped: dict[str, str]
    """Graphs that are not here, and why"""

    def described(self) -> list[DatasetInfo]:
        """What the store keeps of them."""
        return [describe(dataset) for dataset in self.loaded.values()]


def load_graphs(
    specs: Iterable[str],
    data_root: str | Path | None,
    *,
    fetch: bool = False,
    on_skipped: OnSkipped | None = None,
) -> Graphs:
    """Load every graph that is here, once.

    Args:
        specs: Graphs as a recipe names them.
        data_root: Folder with the official files.
        fetch: Whether a graph that is absent is downloaded or refused, not skipped.
        on_skipped: Told of every graph that is skipped, and why.

    Raises:
        InputError: If none is here.
    """
    loaded, skipped = {}, {}
    for spec in dict.fromkeys(specs):
        reason = None if fetch else why_absent(spec, data_root)
        if reason is None:
            loaded[spec] = load_dataset(spec, data_root=data_root)
        else:
            skipped[spec] = reason
            if on_skipped is not None:
                on_skipped(spec, reason)
    if not loaded:
        raise InputError(
            f"none of the recipe's datasets is here ({'; '.join(skipped.values())}): "
            "set --data-root or ECG_DATA to their folder, or ask with --datasets for "
            "one to be downloaded"
        )
    return Graphs(loaded=loaded, skipped=skipped)


def bind_all(plans: Sequence[Plan], graphs: Graphs, device: str) -> list[Group]:
    """Every plan whose graph is here, each configuration and seed once."""
    found: dict[tuple[str, int], Group] = {}
    for plan in plans:
        for group in bind(plan, graphs.loaded, device):
            key = group.configuration.id, group.config.seed
            if key in found:
                group = replace(group, units={**found[key].units, **group.units})
            found[key] = group
    return list(found.values())


def describe(dataset: GraphDataset) -> DatasetInfo:
    """What the store keeps of a graph."""
    statistics = graph_statistics(
        *dataset.labelled_part(dataset.edge_index), directed=dataset.directed
    )
    return DatasetInfo(
        name=dataset.name,
        sha256=dataset.sha256,
        metric=dataset.metric,
        note=dataset.note,
        num_nodes=dataset.num_nodes,
        num_edges=dataset.num_edges,
        num_features=dataset.num_features,
        num_classes=dataset.num_classes,
        statistics=plain(statistics),
    )


def bind(
    plan: Plan, loaded: Mapping[str, GraphDataset], device: str = "auto"
) -> list[Group]:
    """The groups of one plan, one per seed; none if its graph is not loaded.

    Raises:
        InputError: For a setting that does not fit the graph.
    """
    if (dataset := loaded.get(plan.dataset)) is None:
        return []
    asked = replaced(plan.config, {"device": device})
    return [_group(plan, replace(asked, seed=seed), dataset) for seed in plan.seeds]


def _group(plan: Plan, asked: RunConfig, dataset: GraphDataset) -> Group:
    resolved, used = _resolve(asked, dataset)
    contents = check_embeddings([plan.variant], used, resolved, {})
    # What the device decides is no part of the name: see identity.py.
    portable = replaced(resolved, {"train.precision": asked.train.precision})
    named = canonical(portable, plan.variant, plan.task)
    name = configuration_id(named, plan.task, (dataset.name, dataset.sha256), contents)
    splits = known(resolved.splits)
    if plan.task == "statistics":
        splits = _splits_of_graph(plan.variant, resolved, splits)
    return Group(
        task=plan.task,
        configuration=Configuration(
            id=name,
            task=plan.task,
            dataset=dataset.name,
            dataset_sha256=dataset.sha256,
            variant=plan.variant.name,
            embedding=plan.variant.embedding,
            numerics=NUMERICS,
            config=named.to_dict(),
        ),
        config=resolved,
        variant=plan.variant,
        dataset=used,
        units={split: unit_id(name, split, resolved.seed) for split in splits},
    )


def _resolve(asked: RunConfig, dataset: GraphDataset) -> tuple[RunConfig, GraphDataset]:
    """Settings for a device that this machine need not have: others may run it."""
    device = asked.device
    if not device.startswith("cuda") or torch.cuda.is_available():
        return prepare(asked, None, dataset)
    on_cpu = replaced(asked, {"device": "cpu", "train.precision": "auto"})
    resolved, used = prepare(on_cpu, None, dataset)
    precision = asked.train.precision
    if precision == "auto":
        precision = default_precision(torch.device(device))
    return replaced(resolved, {"device": device, "train.precision": precision}), used


def _splits_of_graph(
    variant: Variant, config: RunConfig, splits: tuple[int, ...]
) -> tuple[int, ...]:
    """One split is enough where no label is read: the graph is the same in all."""
    embedders = [make_embedder(p, config, Workspace()) for p in variant.embeddings]
    return splits if any(e.uses_labels for e in embedders) else splits[:1]
