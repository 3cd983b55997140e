"""What is checked before anything is trained or written."""

from collections.abc import Iterable, Mapping

from ecg_gnn.config import OWN_PREFIX, PRECOMPUTED, RunConfig, known
from ecg_gnn.config.variants import Variant
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import Embedder, PrecomputedEmbedder, describe_embedder, embed_nodes
from ecg_gnn.pipeline.workspace import Workspace, make_embedder


def check_embeddings(
    variants: Iterable[Variant],
    dataset: GraphDataset,
    config: RunConfig,
    embedders: Mapping[str, Embedder],
) -> list[str]:
    """Build every embedder and look into every file.

    Returns:
        What the config cannot know: the contents of files and of the caller's own
        embedders, as texts for the run's id.
    """
    workspace = Workspace(embedders=embedders)
    contents = []
    for part in dict.fromkeys(p for variant in variants for p in variant.embeddings):
        embedder = make_embedder(part, config, workspace)
        if isinstance(embedder, PrecomputedEmbedder):
            split = dataset.split(known(config.splits)[0])
            embed_nodes(embedder, dataset.data(), split, seed=0)
        if part.startswith((PRECOMPUTED, OWN_PREFIX)):
            contents.append(f"{part}={describe_embedder(embedder) or repr(embedder)}")
    return contents
