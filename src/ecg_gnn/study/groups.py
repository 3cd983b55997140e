"""From a recipe's plans to groups of units: graphs loaded, settings resolved."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.config import RunConfig, identity, known
from ecg_gnn.config.embedders import entry_of
from ecg_gnn.config.run_config import replaced
from ecg_gnn.config.setting import field_types
from ecg_gnn.data import GraphDataset, load_dataset, resolve_data_root
from ecg_gnn.data.catalogue import find_entry, is_graph_folder, is_path, is_present
from ecg_gnn.pipeline.resolve import check_embeddings
from ecg_gnn.study.grid import Plan
from ecg_gnn.study.one_run import prepare
from ecg_gnn.study.records import measure
from ecg_gnn.study.store import Configuration, DatasetInfo
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import expanded
from ecg_gnn.train import default_precision


@dataclass(frozen=True, kw_only=True)
class Group:
    """The units of one configuration and one seed: they train together."""

    configuration: Configuration
    config: RunConfig  # resolved for this machine, splits and seed included
    variant: identity.Variant
    dataset: GraphDataset  # with the splits that are used
    units: dict[int, str]  # the id of every split's unit

    def only(self, ids: Collection[str]) -> "Group":
        """The group with some of its units."""
        kept = {split: unit for split, unit in self.units.items() if unit in ids}
        return replace(self, units=kept)


def load_graphs(
    names: Iterable[str], data_root: str | Path | None, *, fetch: bool = False
) -> tuple[dict[str, GraphDataset], dict[str, str]]:
    """Load every graph, once; those not here are skipped, or with ``fetch`` fetched."""
    loaded, skipped = {}, {}
    for name in dict.fromkeys(names):
        if not fetch and (reason := _why_absent(name, data_root)):
            skipped[name] = reason
        else:
            loaded[name] = load_dataset(name, data_root=data_root)
    if not loaded:
        raise InputError(
            f"none of the recipe's datasets is here ({'; '.join(skipped.values())}): "
            "set --data-root or ECG_DATA to their folder, or ask with --datasets for "
            "one to be downloaded"
        )
    return loaded, skipped


def _why_absent(name: str, data_root: str | Path | None) -> str | None:
    """Why a graph cannot be loaded without a network; None if it can."""
    path = expanded(name)
    if is_graph_folder(path) or (is_path(name) and path.is_file()):
        return None
    if is_path(name):
        return f"there is no file {name}"
    entry, root = find_entry(name.partition(":")[0]), resolve_data_root(data_root)
    return None if is_present(entry, root) else f"{entry.file} is not in {root}"


def describe(dataset: GraphDataset) -> DatasetInfo:
    """What the store keeps of a graph."""
    names = field_types(DatasetInfo).keys() - {"statistics"}
    values: dict[str, Any] = {name: getattr(dataset, name) for name in names}
    return DatasetInfo(**values, statistics=measure(dataset))


def bind_all(
    plans: Sequence[Plan], loaded: Mapping[str, GraphDataset], device: str
) -> list[Group]:
    """The groups of all plans whose graphs are loaded, without repetitions."""
    groups: dict[tuple[str, int], Group] = {}
    for group in (group for plan in plans for group in bind(plan, loaded, device)):
        key = group.configuration.id, group.config.seed
        known = groups.setdefault(key, group).units
        groups[key] = replace(group, units=known | group.units)
    return list(groups.values())


def bind(
    plan: Plan, loaded: Mapping[str, GraphDataset], device: str = "auto"
) -> list[Group]:
    """The groups of one plan, one per seed; none if its graph is not loaded."""
    if (dataset := loaded.get(plan.settings["dataset"])) is None:
        return []
    asked = replaced(plan.config, {"device": device})
    return [_group(plan, replace(asked, seed=seed), dataset) for seed in plan.seeds]


def _group(plan: Plan, asked: RunConfig, dataset: GraphDataset) -> Group:
    resolved, used = _resolve(asked, dataset)
    task, variant = plan.task, plan.variant
    contents = check_embeddings([variant], used, resolved, {})
    # What the device decides is no part of the name: see identity.py.
    portable = replaced(resolved, {"train.precision": asked.train.precision})
    named = identity.canonical(portable, variant, task)
    graph = dataset.name, dataset.sha256
    name = identity.configuration_id(named, task, graph, contents)
    splits = known(resolved.splits)
    labels = any(entry_of(part).uses_labels for part in variant.embeddings)
    if task == "statistics" and not labels:
        splits = splits[:1]  # the graph is the same for all splits
    return Group(
        configuration=Configuration(
            id=name,
            task=task,
            dataset=dataset.name,
            dataset_sha256=dataset.sha256,
            variant=variant.name,
            embedding=variant.embedding,
            numerics=named.numerics,
            config=named.to_dict(),
        ),
        config=resolved,
        variant=variant,
        dataset=used,
        units={split: identity.unit_id(name, split, resolved.seed) for split in splits},
    )


def _resolve(asked: RunConfig, dataset: GraphDataset) -> tuple[RunConfig, GraphDataset]:
    """Fill in all settings, even for a device that only other machines have."""
    device, precision = asked.device, asked.train.precision
    if not device.startswith("cuda") or torch.cuda.is_available():
        return prepare(asked, None, dataset)
    on_cpu = replaced(asked, {"device": "cpu", "train.precision": "auto"})
    resolved, used = prepare(on_cpu, None, dataset)
    if precision == "auto":
        precision = default_precision(torch.device(device))
    return replaced(resolved, {"device": device, "train.precision": precision}), used
