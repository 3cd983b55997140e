"""The result of a search: members, their weights, and how sure they are; and on disk.

On disk they are safetensors and JSON, nothing pickled.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ecg_gnn.ensemble.boosting import BoostingMember
from ecg_gnn.ensemble.certainty import Scaling, scaled
from ecg_gnn.ensemble.inputs import Bools, Floats, GraphInputs, Target
from ecg_gnn.ensemble.linear import LinearMember
from ecg_gnn.ensemble.members import Fitted, Member
from ecg_gnn.ensemble.network_members import NetworkMember
from ecg_gnn.ensemble.propagation import PropagationMember
from ecg_gnn.ensemble.scoring import Array
from ecg_gnn.ensemble.tree_texts import tensor_to_text, text_to_tensor
from ecg_gnn.reading import first_line, refusing
from ecg_gnn.reading.tensor_files import read_safetensors, read_written
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import atomic_path, below, sha256_of_file
from ecg_gnn.system.machine import out_of_memory, threads_for, using_threads

KINDS: dict[str, type[Member]] = {
    kind.kind: kind
    for kind in (LinearMember, BoostingMember, NetworkMember, PropagationMember)
}
_FILE = "members.safetensors"
_OWN = "ensemble"


@dataclass(frozen=True, eq=False)
class Share:
    """A member, its name and its weight; and what makes its probabilities honest."""

    name: str
    weight: float
    member: Member
    scaling: Scaling | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    """A weighted mean of members, on the graph that they were fitted on."""

    x: Tensor  # features of the stored nodes
    edge_index: Tensor  # edges among them
    reading: GraphInputs  # how features are read
    target: Target  # what is predicted; labels that are not known are never read
    shares: tuple[Share, ...]  # the members, heaviest first
    scaling: Scaling  # makes calibrated probabilities
    errors: Array  # of predictions for held-out nodes, sorted
    multipliers: tuple[float, ...] = (1.0,)
    """Factor of each class when one is chosen; all 1: the most probable."""
    centre: tuple[float, float] = (0.0, 1.0)
    """The mean and the scale of numbers, which members see standardised."""

    # Such a model may hold evolved graphs inside its members, but has none of its own.
    evolved: None = None
    z: None = None

    @property
    def num_classes(self) -> int:
        """How many classes there are; 0 where numbers are predicted."""
        return self.target.num_classes

    def probabilities(
        self, new_x: Tensor | None = None, new_edges: Tensor | None = None
    ) -> Array:
        """Calibrated probabilities ``[N + M, C]``, or predicted numbers ``[N + M, 1]``.

        In edges of new nodes, these are numbered after the stored ones.
        """
        x, edges, target = self.x, self.edge_index, self.target
        if new_x is not None:
            x = torch.cat([x, new_x.to(x)])
            target = target.padded(len(new_x))
        if new_edges is not None:
            edges = torch.cat([edges, new_edges], dim=1)
        inputs = self.reading.of_graph(as_rows(x), edges)
        total = np.zeros((inputs.num_nodes, self.target.width))
        with using_threads(threads_for(inputs.size)), np.errstate(all="ignore"):
            for share in self.shares:
                try:
                    said = share.member.predict(inputs, target)
                    total += share.weight * scaled(said, share.scaling)
                except Exception as error:  # it was read from an edited file
                    if isinstance(error, InputError) or out_of_memory(error):
                        raise
                    raise InputError(
                        f"the model's member {share.name!r} must fit its graph (got "
                        f"{type(error).__name__}: {first_line(error)})"
                    ) from error
        return self.finished(total)

    def finished(self, total: Array) -> Array:
        """Members' weighted mean, calibrated or on the scale of the labels."""
        with np.errstate(all="ignore"):  # what is no number is told at the end, once
            if self.target.is_number:
                mean, scale = self.centre
                total = mean + scale * total
            else:
                total = self.scaling.probabilities(total)
        return finite_rows("predictions", total)


def finite_rows(name: str, rows: Array) -> Array:
    """The rows of nodes; refused if weights, finite themselves, overflow in use."""
    if bad := int((~np.isfinite(rows)).any(axis=1).sum()):
        raise InputError(
            f"the model's weights must give finite {name} (got NaN or infinity for "
            f"{bad} of {len(rows)} nodes)"
        )
    return rows


def as_rows(x: Tensor) -> Floats:
    """Features as an array."""
    return np.ascontiguousarray(x.numpy(), dtype=np.float32)


def hidden_target(
    values: Array, num_classes: int, known: Bools
) -> tuple[Target, tuple[float, float]]:
    """A target in which only known labels are left, and the centre of its numbers."""
    if num_classes:
        hidden = np.where(known, values, 0).astype(np.int64)
        return Target(hidden, num_classes, known), (0, 1)
    mean, scale = float(values[known].mean()), float(values[known].std()) or 1.0
    standard = np.where(known, (values - mean) / scale, 0.0)
    return Target(standard.astype(np.float32), 0, known), (mean, scale)


# --- On disk --------------------------------------------------------------------------


def write_ensemble(folder: Path, fitted: Ensemble) -> dict[str, Any]:
    """Write all members into one file; returns what JSON must say to read them."""
    own = {
        "errors": fitted.errors,
        "projection": fitted.reading.projection,
        "sparse_columns": fitted.reading.sparse_columns,
        "known": fitted.target.known,
        "values": fitted.target.values,
    }
    tensors = {f"{_OWN}.{name}": torch.from_numpy(each) for name, each in own.items()}
    members = []
    for place, share in enumerate(fitted.shares):
        plain, weights = share.member.state()
        tensors |= {f"{place}.{name}": tensor for name, tensor in weights.items()}
        about = {"name": share.name, "weight": share.weight, "kind": share.member.kind}
        slope = None if share.scaling is None else share.scaling.slope
        members.append({**about, "slope": slope, "state": plain})
    _save(tensors, folder / _FILE)
    return {
        "kind": "ensemble",
        "sha256": sha256_of_file(folder / _FILE),
        "classes": fitted.num_classes,
        "members": members,
        "slope": fitted.scaling.slope,
        "offsets": list(fitted.scaling.offsets),
        "multipliers": list(fitted.multipliers),
        "centre": list(fitted.centre),
    }


def read_ensemble(
    folder: Path, described: Mapping[str, Any], x: Tensor, edge_index: Tensor
) -> Ensemble:
    """Read what ``write_ensemble`` wrote, for the graph that it was fitted on."""
    path = folder / _FILE
    tensors = read_written(path, str(described.get("sha256")))
    with refusing(str(path), "the members that the model names"):
        own, classes = below(tensors, _OWN), int(described["classes"])

        def array(name: str, kind: str, length: int | None = None) -> Array:
            """One number each of a ``kind``, as NumPy calls kinds of numbers."""
            found = own[name].numpy()
            right = length is None or len(found) == length
            if found.ndim != 1 or found.dtype.kind != kind or not right:
                raise ValueError(f"{name} has shape {found.shape} of {found.dtype}")
            return found

        columns = array("sparse_columns", "b", x.size(1)), own["projection"].numpy()
        reading = GraphInputs.of(as_rows(x), edge_index, columns)
        # Numbers were written as members see them.
        values = array("values", "i" if classes else "f", len(x))
        target = Target(values, classes, array("known", "b", len(x)))
        if classes:
            target, _ = hidden_target(values, classes, target.known)
        shares = tuple(
            _read_share(each, below(tensors, str(place)), target.width)
            for place, each in enumerate(described["members"])
        )
        if not sum(share.weight for share in shares) > 0:
            raise ValueError("the weights must have a sum above zero")
        offsets = tuple(map(float, described["offsets"]))
        if len(offsets) not in (0, classes):
            raise ValueError("there must be an offset for each class, or none")
        multipliers = tuple(map(float, described.get("multipliers", [1])))
        fits = len(multipliers) in (1, classes)
        if not fits or not all(0 < each < math.inf for each in multipliers):
            raise ValueError("there must be a multiplier above zero for each class")
        mean, scale = described["centre"][:2]
        return Ensemble(
            x=x,
            edge_index=edge_index,
            reading=reading,
            target=target,
            shares=shares,
            scaling=Scaling(float(described["slope"]), offsets),
            multipliers=multipliers,
            errors=array("errors", "f"),
            centre=(float(mean), float(scale)),
        )


def _read_share(
    about: Mapping[str, Any], tensors: dict[str, Tensor], width: int
) -> Share:
    check_choice("kind of member", about["kind"], KINDS)
    member = KINDS[about["kind"]].from_state(width, dict(about["state"]), tensors)
    weight = float(about["weight"])
    if not 0 <= weight < math.inf:
        raise ValueError(f"a weight must be a finite number from zero (got {weight})")
    slope = about.get("slope")  # numbers have none, nor had older models
    scaling = None if slope is None else Scaling(float(slope))
    return Share(str(about["name"]), weight, member, scaling)


# --- What is finished while others are still trained ----------------------------------


def write_finished(path: Path, fitted: Fitted, seconds: float) -> None:
    """Keep a member and its predictions of held-out nodes, whole or not at all."""
    member, out = fitted
    plain, tensors = member.state()
    about = {"kind": member.kind, "width": member.width, "seconds": seconds}
    everything = {f"member.{name}": each for name, each in tensors.items()}
    everything["about"] = text_to_tensor(json.dumps(about | {"state": plain}))
    everything["predicted"] = torch.from_numpy(out)
    with atomic_path(path) as temporary:
        _save(everything, temporary)


def _save(tensors: Mapping[str, Tensor], path: Path) -> None:
    save_file({name: each.contiguous() for name, each in tensors.items()}, path)


def read_finished(path: Path) -> tuple[Fitted, float] | None:
    """What ``write_finished`` kept; None if there is nothing, or not all of it."""
    if not path.is_file():
        return None
    try:
        tensors = read_safetensors(path)
        about = json.loads(tensor_to_text(tensors["about"]))
        member = KINDS[about["kind"]].from_state(
            about["width"], about["state"], below(tensors, "member")
        )
        return (member, tensors["predicted"].numpy()), float(about["seconds"])
    except (InputError, KeyError, TypeError, ValueError, RuntimeError):
        return None
