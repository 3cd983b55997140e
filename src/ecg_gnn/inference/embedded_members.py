"""Candidates that read an embedding: as further features, or as an evolved graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from ecg_gnn.config import RunConfig
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.embed.protocol import StoredEmbedder, as_trained
from ecg_gnn.ensemble.candidates import Candidate, candidates
from ecg_gnn.ensemble.inputs import Bools, Floats, GraphInputs, Numbers, Target
from ecg_gnn.ensemble.job import Job
from ecg_gnn.ensemble.members import Fitted, Member
from ecg_gnn.ensemble.stored import KINDS
from ecg_gnn.ensemble.weighted import as_rows
from ecg_gnn.inference.classifier import edges_to_new
from ecg_gnn.inference.fitting import fit_settings
from ecg_gnn.kernels import using_engine
from ecg_gnn.pipeline import Workspace, embed_for_new_nodes
from ecg_gnn.pipeline.method import evolve_embedding
from ecg_gnn.pipeline.workspace import restore_embedder
from ecg_gnn.system.files import below
from ecg_gnn.system.machine import holding

_STEPS = 150
# Which embedding is read, how, by which candidate of the search.
_USES = (
    ("bgrl", "features", "boosting, neighbours and labels"),
    ("features", "evolved", "SAGE, labels"),
    ("bgrl", "features", "SAGE, labels"),
    ("bgrl", "evolved", "SAGE, labels"),
)


@dataclass(frozen=True, eq=False)
class Embedding:
    """An embedding of all nodes, and what embeds those that come later.

    It reads no labels, so one serves all folds.

    Attributes:
        name: Which embedder.
        config: Its resolved settings.
        z: Of the stored nodes. ``[N, D]``
        evolved: The graph of nearest neighbours. ``[2, E]``
        channels: Features that it embeds.
    """

    name: str
    config: RunConfig
    channels: int
    embedder: StoredEmbedder
    z: Tensor
    evolved: Tensor

    def added_to(self, inputs: GraphInputs, use: str) -> GraphInputs:
        """A graph, the stored nodes first, with the embedding in its inputs."""
        x, edges = torch.from_numpy(inputs.x), inputs.edge_index
        stored = len(self.z)
        z = self.z
        if use == "features" or len(x) > stored:
            with using_engine(self.config.engine):
                z = self.embedder.embed(x.double(), edges).float()
        if use == "features":
            return inputs.with_columns(as_rows(z / self.z.std()))
        added = edges_to_new(z[stored:], self.z, self.config.evolve)
        return inputs.with_evolved(torch.cat([self.evolved, added], dim=1))


@dataclass(frozen=True, eq=False)
class EmbeddedMember(Member):
    """A member that reads an embedding beside the graph."""

    kind: ClassVar[str] = "embedded"

    use: str
    embedding: Embedding
    inner: Member

    def predict(self, inputs: GraphInputs, target: Target, known: Bools) -> Floats:
        """The inner member's predictions from the wider inputs."""
        wider = self.embedding.added_to(inputs, self.use)
        return self.inner.predict(wider, target, known)

    def predict_rows(
        self, inputs: GraphInputs, target: Target, known: Bools, rows: Numbers
    ) -> Floats:
        """See ``Member``."""
        wider = self.embedding.added_to(inputs, self.use)
        return self.inner.predict_rows(wider, target, known, rows)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The embedding beside the inner member."""
        plain, tensors = self.inner.state()
        one = self.embedding
        kept = {f"inner.{name}": each for name, each in tensors.items()}
        fitted = one.embedder.tensors.items()
        kept |= {f"embedder.{name}": as_trained(each) for name, each in fitted}
        # Copies: several members may share one embedding.
        kept |= {"z": one.z.clone(), "evolved": one.evolved.clone()}
        about = {
            "use": self.use,
            "embedding": one.name,
            "config": one.config.to_dict(),
            "channels": one.channels,
            "inner": self.inner.kind,
        }
        return about | {"state": plain}, kept

    @classmethod
    def from_state(
        cls, width: int, plain: dict[str, Any], tensors: dict[str, Tensor]
    ) -> Self:
        """See ``state``."""
        config, name = RunConfig.from_dict(plain["config"]), plain["embedding"]
        kept = below(tensors, "embedder")
        channels = int(plain["channels"])
        embedder = restore_embedder(name, kept, config, channels)
        index = tensors["z"], tensors["evolved"]
        one = Embedding(name, config, channels, embedder, *index)
        inner = KINDS[plain["inner"]]
        own = inner.from_state(width, dict(plain["state"]), below(tensors, "inner"))
        return cls(width, plain["use"], one, own)

    def joined(self, other: Member) -> Self:
        """The inner members joined; the embedding is the same."""
        assert isinstance(other, EmbeddedMember)
        return replace(self, inner=self.inner.joined(other.inner))


KINDS[EmbeddedMember.kind] = EmbeddedMember


class Embeddings:
    """The embeddings of one graph, each trained when it is first asked for.

    Args:
        dataset: The graph.
        seed: Random seed.
        device: Where they are trained.
        store: Where embeddings are kept.
    """

    def __init__(
        self,
        dataset: GraphDataset,
        seed: int,
        device: str,
        store: EmbeddingCache | None,
    ) -> None:
        self._dataset, self._store = dataset, store
        self._settings: dict[str, Any] = {"seed": seed, "device": device}
        self._made: dict[str, Embedding] = {}

    def of(self, name: str) -> Embedding:
        """The embedding of this name."""
        with holding("generator"):
            if name not in self._made:
                self._made[name] = self._train(name)
            return self._made[name]

    def _train(self, name: str) -> Embedding:
        dataset, workspace = self._dataset, Workspace(cache=self._store)
        given = self._settings | {"model": "sage", "embed_steps": _STEPS}
        config = fit_settings(dataset, embedding=name, **given)
        split = dataset.split(0)
        kept = embed_for_new_nodes(name, dataset, split, config, workspace)
        graph = evolve_embedding(kept.z, name, dataset, split, config, workspace)
        index = kept.z.float(), graph.edge_index
        return Embedding(name, config, dataset.num_features, kept.embedder, *index)

    def seconds(self, name: str) -> float:
        """A guess at how long it takes to train one, on one CPU core."""
        if name != "bgrl" or name in self._made:
            return 0.0
        nodes, edges = self._dataset.num_nodes, self._dataset.edge_index.size(1)
        cells = nodes * self._dataset.num_features
        return _STEPS * (2e-5 * nodes + 2.5e-7 * edges + 2.4e-8 * cells)


def embedded_candidates(
    dataset: GraphDataset, seed: int, device: str, store: EmbeddingCache | None
) -> list[Candidate]:
    """Candidates that embed the nodes first; arguments as of ``Embeddings``."""
    embeddings = Embeddings(dataset, seed, device, store)
    plain = {each.name: each for each in candidates(seed)}
    found = []
    for name, use, inner in _USES:
        label = f"{inner}, {name.upper() if name == 'bgrl' else name} "
        label += "embedding" if use == "features" else "evolved graph"
        reads = plain[inner].reads | {"embedding" if use == "features" else "evolved"}
        fit = partial(_fit_embedded, embeddings, name, use, plain[inner].fit)
        wider = replace(plain[inner], name=label, fit=fit, reads=reads)
        found.append(replace(wider, cheap=False, ahead=embeddings.seconds(name)))
    return found


def _fit_embedded(
    embeddings: Embeddings,
    name: str,
    use: str,
    inner: Callable[[Job], Fitted],
    job: Job,
) -> Fitted:
    embedding = embeddings.of(name)
    wider = embedding.added_to(job.inputs, use)
    member, out = inner(replace(job, inputs=wider))
    return EmbeddedMember(member.width, use, embedding, member), out
