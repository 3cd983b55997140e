"""What figures share: matplotlib if it is there, colours, the file, minus signs."""

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.system.files import atomic_path

Paint = Callable[[Any], Any]
FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, told apart by everybody; controls stay grey.
COLOURS = {
    "baseline": "#0072B2",
    "ecg": "#D55E00",
    "identity": "#7F7F7F",
    "embedding": "#009E73",
    "random": "#B8A03A",
    "oracle": "#8A4B9C",
}
# The same figure is the same file: no dates, no random names inside.
_UNDATED: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_SETTINGS: dict[Any, Any] = {
    "text.parse_math": False,  # a $ in a dataset's name is a $
    "svg.hashsalt": "ecg-gnn",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
}


def draw(path: Path, paint: Paint, source: str | None = None) -> None:
    """Paint a figure and write it, in the format that ``path`` ends in.

    ``paint`` makes it out of matplotlib's class ``Figure``; a .png and an .svg carry
    what it is drawn from as their ``source``.
    """
    check_format(path)
    ending = path.suffix.lower()
    metadata = dict(_UNDATED.get(ending, {}))
    if source is not None and ending != ".pdf":
        metadata["Source"] = source
    with _matplotlib() as figure_class:
        figure = paint(figure_class)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=160, metadata=metadata)


def svg_text(paint: Paint) -> str:
    """A painted figure as SVG without a background."""
    out = io.BytesIO()
    with _matplotlib() as figure_class:
        options = {"format": "svg", "metadata": _UNDATED[".svg"], "transparent": True}
        paint(figure_class).savefig(out, **options)
    return out.getvalue().decode()


@contextmanager
def _matplotlib() -> Iterator[Any]:
    """Our settings, while they hold matplotlib's class ``Figure``."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing a figure") from None
    with rc_context(_SETTINGS), warnings.catch_warnings():
        # A name in letters that the font lacks shows boxes; that is no news here.
        warnings.filterwarnings("ignore", message="Glyph")
        yield Figure


def minus(text: str) -> str:
    """A number with a real minus sign."""
    return text.replace("-", "−")


def in_lines(name: str, width: int = 30) -> str:
    """A name with many options must not leave its plot without room."""
    return textwrap.fill(name, width, break_on_hyphens=False)


def check_format(path: Path) -> None:
    """Refuse endings that name no format."""
    if path.suffix.lower() not in FORMATS:
        wanted = f"'out' must end in one of {list(FORMATS)}"
        raise InputError(f"{wanted} (got {str(path)!r})")
