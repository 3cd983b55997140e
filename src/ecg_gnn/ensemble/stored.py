"""Members and ensembles on disk: safetensors and JSON, nothing pickled."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from ecg_gnn.ensemble.boosting import BoostingMember
from ecg_gnn.ensemble.certainty import Conformity, Scaling
from ecg_gnn.ensemble.folds import OutOfFold
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.ensemble.linear import LinearMember
from ecg_gnn.ensemble.members import Fitted, Member, tensor_to_text, text_to_tensor
from ecg_gnn.ensemble.network_members import NetworkMember
from ecg_gnn.ensemble.weighted import Ensemble, Share, as_rows, hidden_target
from ecg_gnn.reading import refusing
from ecg_gnn.reading.tensor_files import read_safetensors, read_written
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import atomic_path, below, sha256_of_file

KINDS: dict[str, type[Member]] = {
    kind.kind: kind for kind in (LinearMember, BoostingMember, NetworkMember)
}
_FILE = "members.safetensors"
_OWN = "ensemble"


def write_ensemble(folder: Path, fitted: Ensemble) -> dict[str, Any]:
    """Write all members into one file; returns what JSON must say to read them."""
    tensors: dict[str, Tensor] = {
        f"{_OWN}.errors": torch.from_numpy(fitted.conformity.errors),
        f"{_OWN}.projection": torch.from_numpy(fitted.reading.projection),
        f"{_OWN}.sparse_columns": torch.from_numpy(fitted.reading.sparse_columns),
        f"{_OWN}.known": torch.from_numpy(fitted.known),
        f"{_OWN}.values": torch.from_numpy(fitted.target.values),
    }
    members = []
    for place, share in enumerate(fitted.shares):
        plain, own = share.member.state()
        tensors |= {f"{place}.{name}": tensor for name, tensor in own.items()}
        about = {"name": share.name, "weight": share.weight, "kind": share.member.kind}
        slope = None if share.scaling is None else share.scaling.slope
        members.append({**about, "slope": slope, "state": plain})
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / _FILE)
    return {
        "kind": "ensemble",
        "sha256": sha256_of_file(folder / _FILE),
        "classes": fitted.num_classes,
        "members": members,
        "slope": fitted.scaling.slope,
        "offsets": list(fitted.scaling.offsets),
        "centre": list(fitted.centre),
    }


def read_ensemble(
    folder: Path, described: Mapping[str, Any], x: Tensor, edge_index: Tensor
) -> Ensemble:
    """Read what ``write_ensemble`` wrote, for the graph that it was fitted on."""
    path = folder / _FILE
    tensors = read_written(path, str(described.get("sha256")))
    with refusing(str(path), "the members that the model names"):
        own = below(tensors, _OWN)
        num_classes = int(described["classes"])
        sparse = _array(own, "sparse_columns", "b", x.size(1))
        projection = own["projection"].numpy()
        reading = GraphInputs.of_columns(as_rows(x), edge_index, sparse, projection)
        known = _array(own, "known", "b", len(x))
        values = _array(own, "values", "i" if num_classes else "f", len(x))
        target, _ = hidden_target(values, num_classes, known)
        if not num_classes:  # they were written as members see them
            target = type(target)(values, 0)
        shares = [
            _read_share(each, below(tensors, str(place)), target.width)
            for place, each in enumerate(described["members"])
        ]
        if not sum(share.weight for share in shares) > 0:
            raise ValueError("the weights must have a sum above zero")
        return Ensemble(
            x=x,
            edge_index=edge_index,
            reading=reading,
            target=target,
            known=known,
            shares=tuple(shares),
            scaling=_scaling(described, num_classes),
            conformity=Conformity(_array(own, "errors", "f")),
            centre=(float(described["centre"][0]), float(described["centre"][1])),
        )


def _scaling(described: Mapping[str, Any], num_classes: int) -> Scaling:
    offsets = tuple(map(float, described["offsets"]))
    if len(offsets) not in (0, num_classes):
        raise ValueError("there must be an offset for each class, or none")
    return Scaling(float(described["slope"]), offsets)


def _array(
    tensors: Mapping[str, Tensor], name: str, kind: str, length: int | None = None
) -> NDArray[Any]:
    """One number for each of something; ``kind`` is as NumPy calls kinds of numbers."""
    array = tensors[name].numpy()
    right = length is None or len(array) == length
    if array.ndim != 1 or array.dtype.kind != kind or not right:
        raise ValueError(f"{name} has shape {array.shape} of {array.dtype}")
    return array


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
    about = {
        "kind": member.kind,
        "width": member.width,
        "folds": list(out.folds),
        "seconds": seconds,
        "state": plain,
    }
    own = {
        "about": text_to_tensor(json.dumps(about)),
        "predicted": torch.from_numpy(out.predicted),
    }
    everything = own | {f"member.{name}": each for name, each in tensors.items()}
    with atomic_path(path) as temporary:
        save_file({k: v.contiguous() for k, v in everything.items()}, temporary)


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
        out = OutOfFold(tensors["predicted"].numpy(), tuple(about["folds"]))
        return (member, out), float(about["seconds"])
    except (InputError, KeyError, TypeError, ValueError, RuntimeError):
        return None
