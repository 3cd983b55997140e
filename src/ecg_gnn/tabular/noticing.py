"""What may be a slip in tables that can be read: said, never mended."""

from collections.abc import Mapping, Sequence

from ecg_gnn.tabular.features.kinds import first_text, parse_numbers, present_texts
from ecg_gnn.tabular.tables import Table

# So large a share of numbers is no accident, and the rest are likely typos.
_NEARLY_ALL = 0.95
# A class is to have a node for training, validation and test each.
_FEWEST = 3


def notice_slips(
    nodes: Table,
    columns: Sequence[str],
    classes: Mapping[str, int],
    label: str,
) -> list[str]:
    """Columns that are nearly numbers; classes that are rare or look alike.

    Args:
        nodes: The table of nodes.
        columns: Columns whose kind was guessed.
        classes: How many nodes each class has.
        label: The column of classes.

    Examples:
        >>> cells = [str(row) for row in range(39)] + ["forty"]
        >>> table = Table("nodes.csv", {"age": cells})
        >>> notice_slips(table, ["age"], {"a": 30, "b": 10}, "kind")[0][:58]
        "'age' is not read as numbers: 39 of 40 values are, but not"
    """
    notes = [_nearly_numbers(nodes, name) for name in columns]
    notes += [_rare_classes(classes, label), _alike_classes(classes, label)]
    return [note for note in notes if note is not None]


def _nearly_numbers(nodes: Table, name: str) -> str | None:
    if parse_numbers(nodes.columns[name]) is not None:
        return None
    values = present_texts(nodes.columns[name])
    others = 0
    for value in values:
        others += parse_numbers([value]) is None
        if others > (1 - _NEARLY_ALL) * len(values):
            return None  # long before the end, where they are words
    numbers = len(values) - others
    row, text = first_text(nodes.columns[name])
    return (
        f"{name!r} is not read as numbers: {numbers} of {len(values)} values are, but "
        f"not {text!r:.60} in row {row} (mend it, or empty it)"
    )


def _rare_classes(classes: Mapping[str, int], label: str) -> str | None:
    rare = [name for name, count in classes.items() if count < _FEWEST]
    if not rare:
        return None
    names = ", ".join(f"{name!r:.40}" for name in rare[:3])
    more = f" and {len(rare) - 3} more" if len(rare) > 3 else ""
    return (
        f"{len(rare)} of {len(classes)} classes have fewer than {_FEWEST} nodes, too "
        f"few to train, choose and test on ({names}{more}): join them with others, or "
        f"is {label!r} not the column of classes?"
    )


def _alike_classes(classes: Mapping[str, int], label: str) -> str | None:
    first: dict[str, str] = {}
    for name in classes:
        other = first.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            return (
                f"{label!r} has classes that differ in spaces or capitals only, such "
                f"as {other!r:.60} and {name!r:.60}: are they one?"
            )
    return None
