"""What a record says of the trial of a search that it belongs to."""

from collections.abc import Mapping
from typing import Any

_KEY = "search"


def trial_mark(sampler: str, number: int) -> dict[str, Any]:
    """For the provenance of a trial's records; the first trial is number 1."""
    return {_KEY: {"sampler": sampler, "trial": number}}


def pruned_mark(
    provenance: Mapping[str, Any], after: int, out_of: int
) -> dict[str, Any]:
    """The provenance of a trial's last record, after which the trial was given up."""
    pruned = {"pruned": {"after": after, "of": out_of}}
    return {**provenance, _KEY: {**provenance[_KEY], **pruned}}


def was_given_up(provenance: Mapping[str, Any], finished: int) -> bool:
    """Whether a search gave a configuration up and nobody has finished it since.

    Args:
        provenance: Of one of its records.
        finished: How many records it has.
    """
    pruned = provenance.get(_KEY, {}).get("pruned")
    return pruned is not None and finished < int(pruned["of"])
