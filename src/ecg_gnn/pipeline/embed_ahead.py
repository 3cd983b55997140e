"""Step 1 for several splits at once, and for nodes that come later."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ecg_gnn.config import RunConfig, entry_of
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import Fit, embed_ahead
from ecg_gnn.embed.cache import EMBEDDING, KEPT, fit_or_load
from ecg_gnn.embed.plain import ConcatEmbedder, concatenate
from ecg_gnn.embed.protocol import StoredEmbedder
from ecg_gnn.embed.trained import TrainedOnLabels
from ecg_gnn.kernels import using_engine
from ecg_gnn.pipeline.cross_fit import leave_out, one_model
from ecg_gnn.pipeline.method import evolve
from ecg_gnn.pipeline.workspace import (
    Workspace,
    embedding_advice,
    is_cross_fitted,
    make_embedder,
    restore_embedder,
    step_seed,
)
from ecg_gnn.system.files import below
from ecg_gnn.system.machine import explaining


class KeptEmbedding(NamedTuple):
    """An embedding that new nodes can be given, too."""

    z: Tensor  # the rows of all nodes, among which new ones find neighbours, [N, D]
    embedder: StoredEmbedder  # embeds new nodes


def embed_for_new_nodes(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> KeptEmbedding:
    """``embed``, with what embeds nodes that come later; arguments as there.

    Cross-fitted, it is the first of the models: none was trained on a new node.
    """
    if is_cross_fitted(name, config, workspace):
        split, config = leave_out(split, config)[1][0], one_model(config)
    data, parts = dataset.data(), entry_of(name).parts
    rows, tensors = [], dict[str, Tensor]()
    for part in parts or (name,):
        embedder = make_embedder(part, config, workspace)
        seed = step_seed("embed", embedder, split, config)
        with using_engine(config.engine), explaining(embedding_advice, embedder, data):
            fit = Fit(data, split, seed)
            fitted = fit_or_load(embedder, fit, workspace.cache, keep=True)
        rows.append(fitted[EMBEDDING])
        before = f"{part}." if parts else ""
        kept = below(fitted, KEPT).items()
        tensors |= {f"{before}{key}": tensor for key, tensor in kept}
    restored = restore_embedder(name, tensors, config, dataset.num_features)
    return KeptEmbedding(concatenate(rows) if parts else rows[0], restored)


def embed_together(
    name: str,
    dataset: GraphDataset,
    splits: Sequence[Split],
    config: RunConfig,
    workspace: Workspace,
) -> None:
    """Train several splits' weak classifiers at the same time, into the cache.

    ``embed`` finds them there; without a cache it trains them one by one.
    """
    if workspace.cache is None:
        return
    if is_cross_fitted(name, config, workspace):
        left_out = [leave_out(split, config)[1] for split in splits]
        for same_fold in zip(*left_out, strict=True):
            embed_together(name, dataset, same_fold, one_model(config), workspace)
        return
    data = {split.index: dataset.data() for split in splits}
    if (source := entry_of(name).evolved_from) is not None:
        embed_together(source, dataset, splits, config, workspace)
        for split in splits:
            graph = evolve(source, dataset, split, config, workspace)
            data[split.index].ecg_edge_index = graph.edge_index
    embedder = make_embedder(name, config, workspace)
    parts = embedder.parts if isinstance(embedder, ConcatEmbedder) else (embedder,)
    for part in parts:
        if isinstance(part, TrainedOnLabels):
            fits = [
                Fit(data[s.index], s, step_seed("embed", part, s, config))
                for s in splits
            ]
            saying = explaining(embedding_advice, part, fits[0].data)
            with using_engine(config.engine), saying:
                embed_ahead(part, fits, workspace.cache)
