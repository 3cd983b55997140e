"""Which variants a run compares, given what its model has room for."""

from ecg_gnn.config import EmbedConfig, ModelConfig, RunConfig
from ecg_gnn.config.variants import BASELINE, Variant, identity_control, variant_of
from ecg_gnn.nn import SPECIALISED, takes_evolved_graphs
from ecg_gnn.system.checks import InputError


def evolves(model: ModelConfig) -> bool:
    """Whether a model has room for evolved graphs; one that has not is a baseline."""
    return takes_evolved_graphs(model.backbone, model.name)


def choose_variants(config: RunConfig) -> list[Variant]:
    """Baseline, one variant per embedding, and identity controls of equal size.

    A model that reads no graph, or the input graph only, is a baseline alone, and so
    is everything with the embedding ``none``.

    Raises:
        InputError: For evolved graphs asked of a model that reads the input graph only.
    """
    names = [name for name in dict.fromkeys(config.embed.names) if name != "none"]
    if not evolves(config.model):
        _check_unasked(config)
        names = []
    chosen = [variant_of(name) for name in names]
    sizes = dict.fromkeys(len(variant.embeddings) for variant in chosen)
    controls = [identity_control(size) for size in sizes]
    return [BASELINE, *(v for v in chosen if v not in controls), *controls]


def _check_unasked(config: RunConfig) -> None:
    """Refuse embeddings that a specialised model has no place for."""
    model, names = config.model.name, config.embed.names
    if model in SPECIALISED and names not in (("none",), EmbedConfig().names):
        raise InputError(
            f"'embedding' must be one of ['none'] for the model {model!r}, which reads "
            f"the input graph only (got {list(names)})"
        )
