"""Options that the verbs of ``ecg-gnn study`` share."""

from pathlib import Path
from typing import Annotated

import typer

StoreFile = Annotated[
    Path,
    typer.Option(
        help="The SQLite file with the study's records; to read, also the text that "
        "study export makes of it."
    ),
]
OfRecipe = Annotated[
    str | None,
    typer.Option(help="Only what belongs to this recipe; a store may hold several."),
]
