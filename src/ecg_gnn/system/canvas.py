"""What figures share: matplotlib if it is there, colours, the file, minus signs."""

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.system.files import atomic_path

Paint = Callable[[Any], Any]
FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which colour-blind readers can tell apart; then a grey.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PALETTE = (BLUE, ORANGE, GREEN, PINK, "#E69F00", "#56B4E9", "#7F7F7F")
_LOOKS = {
    "baseline": (BLUE, "o"),
    "ecg": (ORANGE, "s"),
    "identity": (PALETTE[6], "D"),
    "embedding": (GREEN, "^"),
    "random": (PALETTE[4], "v"),
    "oracle": (PINK, "P"),
}
COLOURS = {variant: colour for variant, (colour, _) in _LOOKS.items()}
MARKERS = {variant: marker for variant, (_, marker) in _LOOKS.items()}
RING: dict[str, Any] = {"marker": "o", "c": "0.3", "ms": 8, "mfc": "none", "ls": ""}
"""How a published number is drawn"""
DASHES: dict[str, Any] = {"color": "0.5", "lw": 0.8, "ls": "--"}
"""How the line is drawn that others are compared with"""
# The same figure is the same file: no dates, no random names inside.
_UNDATED: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_SETTINGS: dict[Any, Any] = {
    "text.parse_math": False,  # a $ in a dataset's name is a $
    "svg.hashsalt": "ecg-gnn",
    "svg.fonttype": "none",
    "font.size": 10,  # in a figure of 5.4 inches, 9 px on a phone
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.titlesize": 13,
    "figure.titleweight": "bold",
    "legend.frameon": False,
    "lines.markersize": 5,
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


def look(variant: str) -> dict[str, Any]:
    """A variant has one colour and one marker in all figures."""
    return {"color": COLOURS[variant], "marker": MARKERS[variant]}


def key(axes: Any, marks: Mapping[str, Mapping[str, Any]]) -> None:
    """What marks mean: beside the title of the axes, off the data."""
    for name, style in marks.items():
        axes.plot([], [], label=name, **{"ls": "", **style})
    place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0}
    # The line of the title, if only an empty one, is room enough.
    axes.set_title(axes.get_title(loc="left") or " ")
    axes.legend(ncols=len(marks), **place).set_in_layout(False)


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
