"""Which embedder a name means, built from a run's settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ecg_gnn.config import OWN_PREFIX, RunConfig, known
from ecg_gnn.embed import (
    BGRLEmbedder,
    ConcatEmbedder,
    Embedder,
    EmbeddingCache,
    FeaturesEmbedder,
    IdentityControl,
    MLPEmbedder,
    OracleControl,
    PrecomputedEmbedder,
    RandomControl,
    TrainedModelEmbedder,
)
from ecg_gnn.system.checks import check_choice
from ecg_gnn.train import LoopSettings, Progress

ProgressFor = Callable[[str], Progress | None]
"""Gives the progress callback for a named piece of work."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What a run brings along.

    Attributes:
        cache: Where embeddings are kept.
        progress: Who is told how it goes.
        embedders: Embedders of the caller's own, by the names ``own:...``.
        loader_workers: Processes that prepare batches, where there are batches.
    """

    cache: EmbeddingCache | None = None
    progress: ProgressFor = lambda _name: None
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    loader_workers: int = 0


def reads_labels(name: str) -> bool:
    """Whether an embedding's name is that of one that is trained on labels.

    Examples:
        >>> [reads_labels(name) for name in ("mlp-gnn", "bgrl", "bgrl,mlp+bgrl")]
        [True, False, True]
    """
    return any(part.startswith("mlp") for part in name.split(","))


def make_embedder(name: str, config: RunConfig, workspace: Workspace) -> Embedder:
    """Build a weak classifier or control from its name and a resolved config."""
    if name in workspace.embedders:
        return workspace.embedders[name]
    if name.startswith(OWN_PREFIX):
        check_choice("embedding", name, workspace.embedders)
    if name.startswith("precomputed:"):
        return PrecomputedEmbedder.from_file(name.removeprefix("precomputed:"))
    builders: dict[str, Callable[[], Embedder]] = {
        "mlp": lambda: _mlp(config, workspace),
        "bgrl": lambda: _bgrl(config, workspace),
        "mlp+bgrl": lambda: ConcatEmbedder(
            (_mlp(config, workspace), _bgrl(config, workspace))
        ),
        "mlp-gnn": lambda: _trained_model(config, workspace),
        "features": FeaturesEmbedder,
        "identity": IdentityControl,
        "random": RandomControl,
        "oracle": OracleControl,
    }
    return builders[name]()


def _mlp(config: RunConfig, workspace: Workspace) -> MLPEmbedder:
    return MLPEmbedder(
        hidden_channels=known(config.embed.hidden),
        num_layers=known(config.embed.layers),
        dropout=config.model.dropout,
        train=train_config(config, config.embed.steps, config.embed.lr),
        device=config.device,
        progress=workspace.progress("MLP embedding"),
    )


def _bgrl(config: RunConfig, workspace: Workspace) -> BGRLEmbedder:
    return BGRLEmbedder(
        widths=(known(config.embed.hidden), known(config.embed.hidden) // 2),
        steps=known(config.embed.steps),
        lr=config.embed.bgrl_lr,
        precision=config.train.precision,
        device=config.device,
        progress=workspace.progress("BGRL embedding"),
    )


def _trained_model(config: RunConfig, workspace: Workspace) -> TrainedModelEmbedder:
    model = config.model
    return TrainedModelEmbedder(
        model=model.name,
        backbone=model.backbone,
        hidden_channels=known(model.hidden),
        num_layers=known(model.layers),
        dropout=model.dropout,
        drop_edge=known(model.drop_edge),
        norm=model.norm,
        evolved_layers=model.evolved_layers,
        options=tuple(model.options.items()),
        train=train_config(config, config.train.steps, config.train.lr),
        device=config.device,
        progress=workspace.progress("MLP→GNN embedding"),
    )


def train_config(
    config: RunConfig, steps: int | None, lr: float | None
) -> LoopSettings:
    """A run's settings for one of its trainings."""
    return LoopSettings(
        steps=known(steps),
        lr=known(lr),
        weight_decay=config.train.weight_decay,
        precision=config.train.precision,
    )
