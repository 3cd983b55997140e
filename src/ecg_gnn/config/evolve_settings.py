"""The settings of steps 1 and 2: how nodes are embedded, and how a graph evolves."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ecg_gnn.config.classify_settings import DEEPEST, LONGEST, WIDEST
from ecg_gnn.config.embedders import EMBEDDING_HELP, check_embedding
from ecg_gnn.config.setting import Section, setting
from ecg_gnn.system.checks import InputError


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Section):
    """Step 1: weak classifiers.

    Examples:
        >>> EmbedConfig(names=("mlp", "bgrl", "mlp,bgrl")).names  # three variants
        ('mlp', 'bgrl', 'mlp,bgrl')
    """

    names: tuple[str, ...] = setting(("mlp",), EMBEDDING_HELP, option="embedding")
    layers: int | None = setting(
        None,
        "Residual blocks of the MLP",
        option="embed_layers",
        between=(1, DEEPEST),
        presets={"quick": 2},
    )
    hidden: int | None = setting(
        None,
        "Width of the MLP; BGRL's encoder is (width, width / 2)",
        option="embed_hidden",
        between=(2, WIDEST),
        presets={"quick": 64},
    )
    steps: int | None = setting(
        None,
        "Training steps of the weak classifier (as many as the classifier's)",
        option="embed_steps",
        between=(1, LONGEST),
        like="train.steps",
    )
    lr: float | None = setting(
        None,
        "Learning rate of the MLP (the classifier's)",
        option="embed_lr",
        between=(0, None),
        like="train.lr",
    )
    dropout: float | None = setting(
        None,
        "Dropout rate of the MLP; the paper's is 0.2",
        option="embed_dropout",
        between=(0, 0.99),
        presets={"quick": 0.2},
        added_later=True,
    )
    bgrl_lr: float = setting(
        1e-3, "Peak learning rate of BGRL", option=None, between=(0, None)
    )
    cross_fit: int = setting(
        0,
        "Train a weak classifier that reads labels K times, each time without one of K "
        "parts of the nodes. A node's neighbours are found with the model that never "
        "saw its label, so training and test nodes get similar ones. Try 5; 0 is off",
        metavar="K",
        between=(2, 100),
        off=0,
        tag="cross-fitted",
        meaning="a node's neighbours come from a model that never saw its label; their "
        "own neighbours, over a second evolved layer, may know it",
        card="The weak classifier is cross-fitted: a node's neighbours are found by a "
        "model that was not trained on its class.",
        added_later=True,
    )
    cross_fit_models: Literal["own", "all"] = setting(
        "own",
        "With --cross-fit, which fold models find neighbours for non-training nodes: "
        "own (only that of the node's fold, as for training nodes), or all (each finds "
        "a share of the k)",
        tag="by all models",
        meaning="nodes outside training get neighbours from all such models",
        card="Those of nodes that do not train are found by all of these models, and "
        "those of new nodes by the first.",
        added_later=True,
    )

    prefix: ClassVar[str] = "embed."

    def _check(self) -> None:
        if not self.names:
            raise InputError(
                "'embed.names' must name at least one embedding (got none)"
            )
        for name in self.names:
            check_embedding(name)
        if not self.cross_fit and self.cross_fit_models != "own":
            raise InputError(
                "'cross_fit_models' must be 'own' without 'cross_fit' (5, say): there "
                f"is one model alone (got {self.cross_fit_models!r})"
            )


@dataclass(frozen=True, kw_only=True)
class EvolveConfig(Section):
    """Step 2: from embeddings to the evolved graph.

    Examples:
        >>> EvolveConfig(k=3, self_loops="within_k").k
        3
    """

    k: int | None = setting(
        None,
        "Neighbours per node in the evolved graph",
        between=(1, None),
        presets={
            "quick": 10,
            "paper": 3,
            "auto": lambda nodes: max(1, min(10, nodes // 10, nodes - 1)),
        },
    )
    self_loops: Literal["exclude", "within_k", "add", "only"] = setting(
        "exclude",
        "Is a node its own neighbour? exclude: never; within_k: yes, as one of the k "
        "(the paper's MLP graphs); add: yes, in addition to the k; only: its only one",
        read=lambda text: text.replace("-", "_"),  # within-k
    )
    similarity: Literal["cosine", "dot", "euclidean"] = setting(
        "cosine", "What nearest means: cosine, dot or euclidean"
    )
    symmetric: bool = setting(
        False, "Also add every evolved edge reversed", flag="--symmetric/--directed"
    )
    weights: Literal["uniform", "similarity"] = setting(
        "uniform",
        "Weight of an evolved edge in sums, means and attention: uniform, or "
        "similarity (the cosine of its two ends, at least 0.01)",
        option="edge_weights",
        tag="weighted",
        meaning="evolved edges weigh what their ends are similar",
        needs="similarity",
        added_later=True,
        kept=False,
    )
    knn: Literal["auto", "exact", "ivf", "hnsw"] = setting(
        "auto",
        "How neighbours are found: exact; ivf or hnsw (approximate, by an index; the "
        "recall is measured and recorded); auto (exact up to 100,000 nodes, and beyond "
        "that if it does not take too long)",
        tag="approximate",
        meaning="neighbours are found by an index, which misses some",
        card="Neighbours were found by an approximate index; those of new nodes are "
        "found exactly.",
        added_later=True,
    )

    prefix: ClassVar[str] = "evolve."
