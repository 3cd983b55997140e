"""Options that several verbs share, and how their texts are read."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ecg_gnn import config
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.embedders import reads_labels
from ecg_gnn.presets import QUICK
from ecg_gnn.reading import read_yaml
from ecg_gnn.system.checks import InputError, printable
from ecg_gnn.system.files import cache_folder

STEP_1, STEP_2 = "Step 1: embed", "Step 2: evolve"
STEP_3, OUTPUT = "Step 3: classify", "Output"

Dataset = Annotated[
    str | None,
    typer.Option(
        help="Catalogue name (see `ecg-gnn data list`), a generator with parameters "
        "such as csbm:nodes=5000,homophily=0.1, an .npz file, or a graph of your own "
        "as `ecg-gnn data import` makes it."
    ),
]
DataRoot = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the official .npz files; else the variable ECG_DATA, "
        "else the cache."
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="What fills the options not given: quick (minutes on a laptop), or "
        "paper (its best settings for this dataset and model)."
    ),
]
K = Annotated[
    int | None,
    typer.Option(
        "--k", help=f"Neighbours per node (quick: {QUICK.k}).", rich_help_panel=STEP_2
    ),
]
SelfLoops = Annotated[
    str | None,
    typer.Option(
        help="Is a node its own neighbour? exclude: never; within_k: always, as one of "
        "the k (the paper's MLP graphs); add: on top of the k; only: nobody else.",
        rich_help_panel=STEP_2,
    ),
]
Similarity = Annotated[
    str | None,
    typer.Option(
        help=f"One of {', '.join(get_args(config.Similarity))}.", rich_help_panel=STEP_2
    ),
]
Symmetric = Annotated[
    bool | None,
    typer.Option(
        "--symmetric/--directed",
        help="Add every evolved edge reversed, too.",
        rich_help_panel=STEP_2,
    ),
]
EmbedLayers = Annotated[
    int | None,
    typer.Option(help="Residual blocks of the MLP.", rich_help_panel=STEP_1),
]
EmbedHidden = Annotated[
    int | None,
    typer.Option(
        help="Width of the MLP; BGRL's encoder is (width, width / 2).",
        rich_help_panel=STEP_1,
    ),
]
EmbedSteps = Annotated[
    int | None,
    typer.Option(
        help="Training steps of the weak classifier; as many as the classifier's "
        f"unless given (quick: {QUICK.steps}).",
        rich_help_panel=STEP_1,
    ),
]
EmbedLr = Annotated[
    float | None,
    typer.Option(
        help="Learning rate of the MLP; the classifier's unless given "
        f"(quick: {QUICK.lr}).",
        rich_help_panel=STEP_1,
    ),
]
CrossFit = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        help="Train a weak classifier that reads labels K times, each time without one "
        "of K parts of the nodes, and find a node's neighbours with the model that "
        "never saw its label: training and test neighbourhoods become alike. 5, say; "
        "0 is off.",
        rich_help_panel=STEP_1,
    ),
]
CrossFitModels = Annotated[
    str | None,
    typer.Option(
        help="With --cross-fit, who finds the neighbours of nodes that train no model: "
        "own (the model of their fold alone, as for training nodes), or all (every "
        "model a share of the k: several opinions on validation and test nodes).",
        rich_help_panel=STEP_1,
    ),
]
EdgeWeights = Annotated[
    str | None,
    typer.Option(
        help="What an evolved edge weighs in sums, means and attention: uniform, or "
        "similarity (the cosine of its two ends, at least 0.01).",
        rich_help_panel=STEP_2,
    ),
]
Knn = Annotated[
    str | None,
    typer.Option(
        help="How neighbours are found: exact; ivf or hnsw (approximate, by an index; "
        "the recall is measured and recorded); auto (exact up to 100,000 nodes, and "
        "beyond while that does not take too long).",
        rich_help_panel=STEP_2,
    ),
]
Gate = Annotated[
    str | None,
    typer.Option(
        help="Between the parallel graphs: none (the paper's projection alone), or "
        "node (before it every node learns how much it takes of each graph).",
        rich_help_panel=STEP_3,
    ),
]
EvolvedLayers = Annotated[
    str | None,
    typer.Option(
        help="The layers that read evolved graphs: all (the paper's), or last (with "
        "--cross-fit no training label then comes back to its node over the evolved "
        "edges of its neighbours).",
        rich_help_panel=STEP_3,
    ),
]
LabelInput = Annotated[
    float | None,
    typer.Option(
        metavar="RATE",
        help="Give labels of training nodes as input, too: in every step those of a "
        "random share RATE, and only the others are learned; to predict, all of them. "
        "Transductive, and named in every table. 0.5, say; 0 is off.",
        rich_help_panel=STEP_3,
    ),
]
Seed = Annotated[int | None, typer.Option(help="Determines everything random.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")]
EngineName = Annotated[
    str | None,
    typer.Option(
        help="fast, or reference: plain torch, the same numbers up to rounding."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON only.", rich_help_panel=OUTPUT)
]

EMBEDDING_HELP = (
    "Weak classifier: mlp (labels, no graph), bgrl (graph, no labels), mlp+bgrl (both, "
    "concatenated), mlp-gnn (a model trained on the MLP's graph), features, "
    "precomputed:FILE (.npy, .npz or .safetensors, one row per node), none (baseline "
    "only); or a control: identity, random, oracle (sees test labels)."
)


_MAX_SPLITS = 100_000  # no dataset has as many: a slip of the finger ends here


def given(**values: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def parse_self_loops(text: str | None) -> str | None:
    """``within-k`` and ``within_k`` are the same."""
    return None if text is None else text.replace("-", "_")


def parse_splits(text: str | None) -> tuple[int, ...] | None:
    """Read ``0-9``, ``0,3,5`` or ``0-2,7``."""
    if text is None:
        return None
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            ends = (int(first), int(last if dash else first))
        except ValueError:
            raise InputError(
                f"'splits' must be like 0-9 or 0,3,5 (got {text!r})"
            ) from None
        found += range(ends[0], min(ends[1], ends[0] + _MAX_SPLITS) + 1)
    if not found or len(set(found)) != len(found):
        raise InputError(
            f"'splits' must name at least one split, each once (got {text!r})"
        )
    return tuple(found)


def parse_options(texts: list[str] | None) -> dict[str, Any] | None:
    """Read ``alpha=0.2`` and the like; numbers and yes/no as YAML writes them."""
    if not texts:
        return None
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise InputError(
                f"'set' must be like alpha=0.2, each name once (got {text!r})"
            )
        try:
            found[name.strip()] = read_yaml(name, value)
        except InputError:
            found[name.strip()] = value
    return found


def warn(text: str) -> None:
    """Say what a user should know, beside what is printed."""
    print(f"warning: {printable(text)}", file=sys.stderr)


def warn_of_cross_fit(folds: int | None, embeddings: Iterable[str]) -> None:
    """Say so where cross-fitting changes nothing: nothing asked for reads labels."""
    names = tuple(embeddings)
    if folds and not any(map(reads_labels, names)):
        text = f"no labels are read by {' or '.join(names)}"
        warn(f"--cross-fit changes nothing: {text}")


def check_apart(out: Path, *inputs: str | Path | None) -> None:
    """Refuse to write over what is being read."""
    for path in inputs:
        if path is not None and out.resolve() == Path(path).resolve():
            raise InputError(f"'out' must be another file than {str(path)!r}")


def default_cache() -> EmbeddingCache:
    """Where embeddings are kept: ``ECG_CACHE``, else the user's cache."""
    return EmbeddingCache(cache_folder("embeddings"))
