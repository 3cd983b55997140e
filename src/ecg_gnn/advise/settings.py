"""What is asked, and the settings and the whole plan that follow from it."""

from dataclasses import dataclass, replace

from ecg_gnn.advise.contenders import make_candidates
from ecg_gnn.advise.plan import Plan
from ecg_gnn.config import CONTROLS, EMBEDDINGS, EmbedConfig, RunConfig, known
from ecg_gnn.config.dotted import with_defaults
from ecg_gnn.data import GraphDataset
from ecg_gnn.inference.defaults import FitOptions, choose_settings
from ecg_gnn.nn import SPECIALISED, selectable, takes_evolved_graphs
from ecg_gnn.pipeline.preflight import check_embeddings
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.system.checks import InputError

DEFAULT_EMBEDDINGS = ("mlp", "bgrl", "features")
DEFAULT_KS = (10, 3)
_NUM_SPLITS = 10
# Networks are kept small: more splits and steps tell more than more channels.
_SMALL, _WIDE, _NARROW = 5_000, 64, 32


@dataclass(frozen=True, kw_only=True)
class AdviceOptions:
    """What a user may set; None is chosen by the graph.

    Attributes:
        model: The network: message passing, or a whole one that takes evolved graphs.
        embeddings: To choose from.
        ks: Neighbours per node to choose from, the last to be given up first.
        splits: Which of the graph's splits.
        random_splits: Fresh stratified splits instead of the graph's own.
        seed: Determines everything random.
        device: auto, cpu or cuda.
    """

    model: str | None = None
    embeddings: tuple[str, ...] = DEFAULT_EMBEDDINGS
    ks: tuple[int, ...] | None = None
    splits: tuple[int, ...] | None = None
    random_splits: bool = False
    seed: int = 0
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A graph with its splits, settings for it, and all that could be trained."""

    dataset: GraphDataset
    config: RunConfig
    whole: Plan


def make_question(dataset: GraphDataset, options: AdviceOptions) -> Question:
    """Fill in and check everything before anything is trained.

    Raises:
        InputError: For an embedding, model, k or split that does not fit.
    """
    for name in options.embeddings:
        _check_candidate(name)
    if options.random_splits:
        dataset = dataset.with_random_splits(_NUM_SPLITS, options.seed)
    splits = options.splits or tuple(range(min(_NUM_SPLITS, dataset.num_splits)))
    config = replace(
        _settings(dataset, options),
        dataset=dataset.name,
        splits=splits,
        random_splits=options.random_splits,
        embed=EmbedConfig(names=options.embeddings),
    )
    ks = options.ks or _fitting_ks(known(config.evolve.k))
    for k in ks:
        config = replace(config, evolve=replace(config.evolve, k=k))
        resolved = resolve(config, dataset)  # refuses what does not fit
    whole = Plan(
        steps=known(resolved.train.steps),
        candidates=make_candidates(options.embeddings, ks),
        splits=splits,
    )
    variants = [contender.variant for contender in whole.contenders]
    check_embeddings(variants, dataset, resolved, {})
    return Question(dataset=dataset, config=resolved, whole=whole)


def _check_candidate(name: str) -> None:
    allowed = [choice for choice in EMBEDDINGS if choice != "none"]
    for part in name.split(","):
        if part in (*CONTROLS, "none"):
            raise InputError(
                f"'embedding' must be one of {allowed} here, controls come by "
                f"themselves (got {name!r})"
            )


def _settings(dataset: GraphDataset, options: AdviceOptions) -> RunConfig:
    """Those of ``fit``, but for the width."""
    asked = FitOptions(
        model=options.model,
        hidden=_WIDE if dataset.num_nodes <= _SMALL else _NARROW,
        seed=options.seed,
        device=options.device,
    )
    config = choose_settings(dataset, asked)
    model = config.model
    takes = [m for m in selectable("benchmark") if takes_evolved_graphs("benchmark", m)]
    if model.name not in takes:
        raise InputError(
            f"'model' must be one of {takes}, which take evolved graphs "
            f"(got {model.name!r})"
        )
    if model.name in SPECIALISED:  # it has sizes of its own, which the preset knows
        return with_defaults(config, ["model.layers", "model.hidden", "train.lr"])
    return config


def _fitting_ks(most: int) -> tuple[int, ...]:
    """The usual ones, on small graphs smaller."""
    return tuple(dict.fromkeys(min(k, most) for k in DEFAULT_KS))
