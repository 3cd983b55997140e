"""The folder of one piece of advice: words, numbers and a picture."""

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.commands import Asked, next_steps
from ecg_gnn.advise.figure import draw_advice
from ecg_gnn.advise.words import advice_markdown, answer, cuts, paragraphs
from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.system.files import write_json, write_text

TEXT, NUMBERS, PICTURE = "advice.md", "advice.json", "advice.png"


def claim(folder: Path) -> None:
    """Make the folder before anything is trained, or refuse.

    One that holds earlier advice is taken; anything else in it is the user's.
    """
    shown = repr(str(folder))
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"'out' must be a folder (got the file {shown})")
        earlier = (folder / NUMBERS).is_file()
        if folder.is_dir() and any(folder.iterdir()) and not earlier:
            raise InputError(
                f"'out' {shown} is not empty and holds no advice: choose another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or os.fspath(folder)
        raise InputError(f"'out' {shown} cannot be written ({reason})") from None


def write_advice(advice: Advice, asked: Asked, folder: Path) -> list[str]:
    """Write every file, each whole or not at all; the numbers come last."""
    picture = _draw(advice, folder)
    write_text(folder / TEXT, advice_markdown(advice, asked, picture))
    write_json(folder / NUMBERS, advice_dict(advice, asked) | {"out": str(folder)})
    names = (TEXT, NUMBERS, PICTURE)
    return [name for name in names if (folder / name).is_file()]


def advice_dict(advice: Advice, asked: Asked) -> dict[str, Any]:
    """Numbers and words in plain values."""
    return {
        **advice.to_dict(),
        "answer": answer(advice),
        "words": paragraphs(advice),
        "cut": cuts(advice),
        "next": [asdict(step) for step in next_steps(advice, asked)],
    }


def _draw(advice: Advice, folder: Path) -> str:
    """A line that shows the picture, or says why there is none."""
    try:
        if advice.chosen is not None:
            draw_advice(advice, folder / PICTURE)
            return f"![Choice, scores, differences and homophily]({PICTURE})"
        reason = "no split was finished"
    except MissingExtraError as error:
        reason = str(error)
    (folder / PICTURE).unlink(missing_ok=True)  # of earlier advice
    return f"No picture: {reason}."
