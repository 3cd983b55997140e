"""Which of a store's configurations newer numbers have replaced."""

from collections.abc import Collection

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import RunConfig
from ecg_gnn.study.store.rows import Configuration


def newest(known: Collection[Configuration], *alike: str) -> set[str]:
    """The ids of those that count, by the newest numerics that are there.

    Where a network or an embedder moved alone, what was made before still counts until
    there is something newer that is equal in the fields ``alike``.
    """
    behind, least = dict[str, int](), dict[tuple[object, ...], int]()
    for at in known:
        behind[at.id] = RunConfig.from_dict(at.config).numerics - at.numerics
        group = tuple(getattr(at, name) for name in alike)
        least[group] = min(behind[at.id], least.get(group, behind[at.id]))
    lowest = NUMERICS - min(least.values(), default=0)
    return {
        at.id
        for at in known
        if at.numerics >= lowest
        and behind[at.id] == least[tuple(getattr(at, name) for name in alike)]
    }
