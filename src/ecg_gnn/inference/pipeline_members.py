"""Candidates that the pipeline trains: embeddings, whole networks, mini-batches."""

from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.embed.protocol import StoredEmbedder, as_trained, load_weights
from ecg_gnn.ensemble import members
from ecg_gnn.ensemble.candidates import Candidate, candidates
from ecg_gnn.ensemble.inputs import ALL, Floats, GraphInputs, Numbers, Rows, Target
from ecg_gnn.ensemble.members import Fitted, Job, Member, Plain, Tensors
from ecg_gnn.ensemble.tournament import SMALL
from ecg_gnn.ensemble.weighted import KINDS, as_rows
from ecg_gnn.inference.classifier import Calibration, edges_to_new, fit_classifier
from ecg_gnn.inference.fitting import fit_settings
from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import Network
from ecg_gnn.pipeline import Workspace, embed_for_new_nodes, resolve
from ecg_gnn.pipeline.classification import BATCH_SIZE, network_of, prepare_graphs
from ecg_gnn.pipeline.method import evolve_embedding
from ecg_gnn.pipeline.workspace import restore_embedder
from ecg_gnn.system.files import below
from ecg_gnn.system.machine import holding

_EMBED_STEPS = 150
# Which embedding is read, how, by which candidate of the search.
_USES = (
    ("bgrl", "features", "boosting, neighbours and labels"),
    ("features", "evolved", "SAGE, labels"),
    ("bgrl", "evolved", "SAGE, labels"),
)
_WHOLE = ("gpr-gnn", "fagcn")
_STEPS, _LAYERS = 300, 2


def _step_seconds(
    dataset: GraphDataset, per_node: float, per_edge: float, per_cell: float
) -> float:
    """A guess at how long a step takes on one CPU core."""
    per_node += per_cell * dataset.num_features
    return per_node * dataset.num_nodes + per_edge * dataset.edge_index.size(1)


@dataclass(frozen=True, eq=False)
class Embedding:
    """An embedding of all nodes, and what embeds those that come later.

    It reads no labels, so one serves all folds.
    """

    name: str
    config: RunConfig  # resolved
    channels: int  # features that it embeds
    embedder: StoredEmbedder
    z: Tensor  # of the stored nodes, [N, D]
    evolved: Tensor  # the graph of nearest neighbours, [2, E]

    def added_to(self, inputs: GraphInputs, use: str) -> GraphInputs:
        """A graph, the stored nodes first, with the embedding in its inputs."""
        x, edges = torch.from_numpy(inputs.x), inputs.edge_index
        z, stored = self.z, len(self.z)
        if use == "features" or len(x) > stored:
            with using_engine(self.config.engine):
                z = self.embedder.embed(x.double(), edges).float()
        if use == "features":
            return inputs.with_columns(as_rows(z / self.z.std()))
        added = edges_to_new(z[stored:], self.z, self.config.evolve)
        return replace(inputs, evolved=torch.cat([self.evolved, added], dim=1))


@dataclass(frozen=True, eq=False)
class EmbeddedMember(Member):
    """A member that reads an embedding beside the graph."""

    kind: ClassVar[str] = "embedded"

    use: str
    embedding: Embedding
    inner: Member

    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        wider = self.embedding.added_to(inputs, self.use)
        return self.inner.predict(wider, target, rows)

    def state(self) -> tuple[Plain, Tensors]:
        plain, tensors = self.inner.state()
        one = self.embedding
        # Copies: several members may share one embedding.
        kept = {"z": one.z.clone(), "evolved": one.evolved.clone()}
        kept |= {f"inner.{name}": each for name, each in tensors.items()}
        for name, each in one.embedder.tensors.items():
            kept[f"embedder.{name}"] = as_trained(each)
        inner = {"use": self.use, "inner": self.inner.kind, "state": plain}
        about = {"embedding": one.name, "config": one.config.to_dict()}
        return inner | about | {"channels": one.channels}, kept

    @classmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> Self:
        config, name = RunConfig.from_dict(plain["config"]), plain["embedding"]
        kept, channels = below(tensors, "embedder"), int(plain["channels"])
        embedder = restore_embedder(name, kept, config, channels)
        index = tensors["z"], tensors["evolved"]
        one = Embedding(name, config, channels, embedder, *index)
        inner = KINDS[plain["inner"]]
        own = inner.from_state(width, dict(plain["state"]), below(tensors, "inner"))
        return cls(width, plain["use"], one, own)

    def joined(self, other: Member) -> Self:
        assert isinstance(other, EmbeddedMember)  # of the same embedding
        return replace(self, inner=self.inner.joined(other.inner))


@dataclass(eq=False)
class Embeddings:
    """The embeddings of one graph, each trained when it is first asked for."""

    dataset: GraphDataset
    seed: int
    device: str
    store: EmbeddingCache | None
    made: dict[str, Embedding] = field(default_factory=dict)

    @holding("generator")
    def of(self, name: str) -> Embedding:
        if name in self.made:
            return self.made[name]
        dataset, workspace = self.dataset, Workspace(cache=self.store)
        asked = {"embedding": name, "model": "sage", "embed_steps": _EMBED_STEPS}
        config = fit_settings(dataset, seed=self.seed, device=self.device, **asked)
        around = dataset, dataset.split(0), config, workspace
        z, embedder = embed_for_new_nodes(name, *around)
        index = z.float(), evolve_embedding(z, name, *around).edge_index
        found = Embedding(name, config, dataset.num_features, embedder, *index)
        return self.made.setdefault(name, found)


def embedded_candidates(
    dataset: GraphDataset, seed: int, device: str, store: EmbeddingCache | None
) -> list[Candidate]:
    """Candidates that embed the nodes first, or read them from a ``store``."""
    embeddings = Embeddings(dataset, seed, device, store)
    step = _step_seconds(dataset, 2e-5, 2.5e-7, 2.4e-8)
    plain = {each.name: each for each in candidates(seed)}
    found = []
    for name, use, inner in _USES:
        label = f"{inner}, {name.upper() if name == 'bgrl' else name} "
        label += "embedding" if use == "features" else "evolved graph"
        reads = plain[inner].reads | {"embedding" if use == "features" else "evolved"}
        fit = partial(_fit_embedded, embeddings, name, use, plain[inner])
        wider = replace(plain[inner], name=label, fit=fit, reads=reads)
        ahead = _EMBED_STEPS * step if name == "bgrl" else 0.0
        found.append(replace(wider, cheap=False, ahead=ahead))
    return found


def _fit_embedded(
    embeddings: Embeddings, name: str, use: str, inner: Candidate, job: Job
) -> Fitted:
    embedding = embeddings.of(name)
    wider = replace(job, inputs=embedding.added_to(job.inputs, use))
    member, out = inner.train(wider)
    return EmbeddedMember(member.width, use, embedding, member), out


@dataclass(frozen=True, eq=False)
class WholeMember(Member):
    """Networks of one fold each, as ``fit --model`` would keep them."""

    kind: ClassVar[str] = "whole"
    of_folds = ("networks",)

    config: RunConfig
    channels: int
    networks: tuple[Network, ...]

    @torch.no_grad()
    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        data = Data(torch.from_numpy(inputs.x).double(), inputs.edge_index)
        graphs, plain = prepare_graphs(data, [], self.config), Calibration()
        with using_engine(self.config.engine):
            said = [plain.probabilities(each(data.x, graphs)) for each in self.networks]
        return np.asarray(np.mean(said, axis=0), dtype=np.float32)[rows]

    def state(self) -> tuple[Plain, Tensors]:
        tensors = {
            f"{place}.{name}": as_trained(tensor)
            for place, network in enumerate(self.networks)
            for name, tensor in network.state_dict().items()
        }
        plain = {"config": self.config.to_dict(), "networks": len(self.networks)}
        return plain | {"channels": self.channels}, tensors

    @classmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> Self:
        """See ``state``; the graph is given when predictions are asked for."""
        config, channels = RunConfig.from_dict(plain["config"]), int(plain["channels"])
        # What of a graph decides the shapes of a network that new nodes may join.
        shape = {"num_nodes": 1, "num_features": channels, "num_classes": width}
        sizes: Any = SimpleNamespace(**shape)
        networks = []
        for place in range(int(plain["networks"])):
            with torch.device("meta"):  # absurd sizes must not take memory
                network = network_of(config, sizes, 1)
                load_weights(network, below(tensors, str(place)))
            networks.append(network.double().eval())
        return cls(width, config, channels, tuple(networks))


def whole_candidates(dataset: GraphDataset, seed: int, device: str) -> list[Candidate]:
    """Networks that the pipeline trains, of classes only.

    Where full batches do not fit into memory, SAGE by mini-batches takes their place.
    """
    split, size = dataset.split(0), dataset.num_nodes + dataset.edge_index.size(1)
    labelled = int((split.train_mask | split.val_mask).sum())
    steps = _STEPS * (1 if size > SMALL else members.fold_count(labelled))
    step = _step_seconds(dataset, 8e-6, 2e-7, 1e-8)

    def candidate(name: str, about: dict[str, Any], **settings: Any) -> Candidate:
        given = settings | {"seed": seed, "device": device}
        fit = partial(_fit_whole, dataset, given)
        return Candidate(name, fit, frozenset({"graph"}), **about)

    full = {"ahead": steps * step, "layers": _LAYERS}
    batches = {"model": "sage", "batch_size": BATCH_SIZE}
    return [
        *(candidate(name, full, model=name) for name in _WHOLE),
        candidate("SAGE by mini-batches", {"only_if_large": True}, **batches),
    ]


def _fit_whole(dataset: GraphDataset, settings: dict[str, Any], job: Job) -> Fitted:
    fixed: dict[str, Any] = {"preset": "auto", "splits": (0,), "embedding": "none"}
    networks, held_out = [], []
    for fold in job.folds.values():
        if job.stopped():
            raise InterruptedError("stopped before the last fold")
        part = _with_split(dataset, job.target, fold.train)
        asked = RunConfig.of(dataset=part.name, **fixed, **settings)
        with holding("generator"):
            one, _ = fit_classifier(part, resolve(asked, part), "none")
        # The ensemble has a calibration of its own.
        said = replace(one, calibration=Calibration()).probabilities()
        held_out.append(said[fold.held_out].astype(np.float32))
        networks.append(one.network)
    about = job.target.width, one.config, dataset.num_features
    return WholeMember(*about, tuple(networks)), job.out_of_fold(held_out)


def _with_split(dataset: GraphDataset, target: Target, nodes: Numbers) -> GraphDataset:
    """The graph with one split of the nodes that a fold learns from, and no test nodes.

    Some of them choose the step: were it the held-out ones, these would flatter it.
    """
    count = members.fold_count(len(nodes))
    own = members.make_folds(target, nodes, count, seed=0)[0]
    masks = torch.zeros(3, 1, dataset.num_nodes, dtype=torch.bool)
    masks[0, 0, torch.from_numpy(own.train)] = True
    masks[1, 0, torch.from_numpy(own.held_out)] = True
    return replace(
        dataset, train_masks=masks[0], val_masks=masks[1], test_masks=masks[2]
    )


KINDS |= {kind.kind: kind for kind in (EmbeddedMember, WholeMember)}
