"""From plans to units: graphs are loaded, settings resolved, everything named."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.embedders import Workspace, make_embedder
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.study.datasets import why_absent
from ecg_gnn.study.expand import Plan
from ecg_gnn.study.identity import Task, canonical, configuration_id, unit_id
from ecg_gnn.study.preflight import check_embeddings
from ecg_gnn.study.run import prepare
from ecg_gnn.study.settings import replaced
from ecg_gnn.study.statistics import plain
from ecg_gnn.study.store import Configuration, DatasetInfo
from ecg_gnn.study.store.writer import NewUnit
from ecg_gnn.study.variants import Variant

OnSkipped = Callable[[str, str], None]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The splits of one configuration and one seed: what is trained together."""

    task: Task
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
class Bound:
    """A recipe on the graphs that are here."""

    groups: list[Group]
    datasets: list[DatasetInfo]
    skipped: dict[str, str]
    """Graphs that are not here, and why"""


def bind_all(
    plans: Sequence[Plan],
    data_root: str | Path | None,
    device: str = "auto",
    *,
    fetch: bool = False,
    on_skipped: OnSkipped | None = None,
) -> Bound:
    """Every plan whose graph is here, each configuration and seed once.

    Args:
        plans: What a recipe expands to.
        data_root: Folder with the official files.
        device: Where it is to run.
        fetch: Whether a graph that is absent is downloaded or refused, not skipped.
        on_skipped: Told of every graph that is skipped, and why.
    """
    loaded, skipped = {}, {}
    for spec in dict.fromkeys(plan.dataset for plan in plans):
        reason = None if fetch else why_absent(spec, data_root)
        if reason is None:
            loaded[spec] = load_dataset(spec, data_root=data_root)
        else:
            skipped[spec] = reason
            if on_skipped is not None:
                on_skipped(spec, reason)
    found: dict[tuple[str, int], Group] = {}
    for plan in plans:
        for group in bind(plan, loaded, device):
            key = group.configuration.id, group.config.seed
            if key in found:
                group = replace(group, units={**found[key].units, **group.units})
            found[key] = group
    return Bound(
        groups=list(found.values()),
        datasets=[describe(dataset) for dataset in loaded.values()],
        skipped=skipped,
    )


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
    resolved, used = prepare(asked, None, dataset)
    contents = check_embeddings([plan.variant], used, resolved, {})
    # What the device decides is no part of the name: see identity.py.
    portable = replaced(resolved, {"train.precision": asked.train.precision})
    named = canonical(portable, plan.variant, plan.task)
    name = configuration_id(named, plan.task, dataset, contents)
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


def _splits_of_graph(
    variant: Variant, config: RunConfig, splits: tuple[int, ...]
) -> tuple[int, ...]:
    """One split is enough where no label is read: the graph is the same in all."""
    embedders = [make_embedder(p, config, Workspace()) for p in variant.embeddings]
    return splits if any(e.uses_labels for e in embedders) else splits[:1]
