"""Logistic regression, or ridge regression for numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ecg_gnn.ensemble.inputs import (
    ALL,
    Floats,
    GraphInputs,
    Numbers,
    Rows,
    Sparse,
    Target,
    neighbour_table,
)
from ecg_gnn.ensemble.members import Fitted, Job, Member, Plain, Tensors, thinned
from ecg_gnn.ensemble.scoring import smooth

# Parts beside those of a neighbour table: whom a node is joined to; features after
# one and two steps of GCN's propagation, in place of a node's own; sparse ones, too.
EDGES, SMOOTHED, SMOOTHED_SPARSE = "edges", "smoothed", "smoothed sparse"
_MOST_SMOOTHED = 5_000_000  # entries; were there more, their principal directions do
_MOST_JOINED = 20_000  # nodes with a column of their own in it: those of most edges
# Inverse strengths of regularisation; the first fold chooses one for all.
_STRENGTHS = (0.03, 0.3, 3.0)
_MOST_STEPS, _FEW_STEPS = 100, 20
_NEVER = -1e4  # the bias of a class that a model has not seen
# Of more nodes, every second or third is enough for weights of a few columns.
_MOST_ROWS = 50_000
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class LinearMember(Member):
    """Weights of one model per fold."""

    kind: ClassVar[str] = "linear"
    of_folds = ("weights", "biases")

    parts: tuple[str, ...]  # of the neighbour table, and edges
    joined_to: Numbers  # nodes with a column that says who is joined to them
    means: Floats  # of every column of the table, [F]
    scales: Floats
    weights: Tensor  # [folds, columns, width]
    biases: Tensor  # [folds, 1, width]

    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        table = self.rows(inputs, target)
        logits = np.stack([table @ weights for weights in self.weights.numpy()])
        shares = torch.from_numpy(logits) + self.biases
        if not target.is_number:
            shares = shares.softmax(dim=-1)
        return np.asarray(shares.mean(dim=0).numpy(), dtype=np.float32)[rows]

    def rows(self, inputs: GraphInputs, target: Target) -> Sparse:
        """The table, standardised, with all sparse columns beside it."""
        table = neighbour_table(inputs, self.parts, target)
        # All cells as entries; looking for those that are zero would take longer.
        table = (table - self.means) / self.scales
        places = np.tile(np.arange(table.shape[1], dtype=np.int32), len(table))
        ends = np.arange(len(table) + 1) * table.shape[1]
        own = sp.csr_matrix((table.ravel(), places, ends), table.shape)
        blocks = [own, inputs.sparse]
        if SMOOTHED in self.parts:
            read = sp.hstack(blocks) if SMOOTHED_SPARSE in self.parts else own
            once = inputs.smoothing @ read
            blocks = [once, inputs.smoothing @ once]
        if "hop1" in self.parts:
            readings = (inputs, *inputs.ways)
            blocks += [each.mean_of_neighbours @ inputs.sparse for each in readings]
        blocks.append(inputs.adjacency[:, self.joined_to])
        return sp.hstack(blocks).tocsr().astype(np.float32)

    def state(self) -> tuple[Plain, Tensors]:
        scaling = torch.from_numpy(np.stack([self.means, self.scales]))
        tensors = {"weights": self.weights, "biases": self.biases, "scaling": scaling}
        tensors["joined_to"] = torch.tensor(self.joined_to)
        return {"parts": list(self.parts)}, tensors

    @classmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> Self:
        means, scales = tensors["scaling"].numpy()
        none = torch.zeros(0, dtype=torch.int64)  # as in older models
        joined_to = tensors.get("joined_to", none).numpy()
        fitted = tensors["weights"], tensors["biases"]
        return cls(width, tuple(plain["parts"]), joined_to, means, scales, *fitted)


def _most_joined(inputs: GraphInputs) -> Numbers:
    """Nodes to which at least two others are joined."""
    counts = np.bincount(inputs.adjacency.indices, minlength=inputs.num_nodes)
    most = np.argsort(-counts, kind="stable")[:_MOST_JOINED]
    return np.sort(most[counts[most] > 1])


def fit_linear(parts: Sequence[str], _seed: int, job: Job) -> Fitted:
    """Fit a model per fold, regularised as is best for the first."""
    inputs, target, folds = job.inputs, job.target, job.folds
    if SMOOTHED in parts:
        step, counts = inputs.smoothing.sign(), np.diff(inputs.sparse.indptr)
        if (step @ (step @ counts)).sum() <= _MOST_SMOOTHED:
            parts = (*parts, SMOOTHED_SPARSE)
    every = target.knowing(np.concatenate([fold.train for fold in folds.values()]))
    everything = neighbour_table(inputs, parts, every)
    scales = everything.std(axis=0)
    start = LinearMember(
        width=target.width,
        parts=tuple(parts),
        joined_to=_most_joined(inputs) if EDGES in parts else np.zeros(0, np.int64),
        means=everything.mean(axis=0),
        scales=np.where(scales > 1e-6, scales, 1).astype(np.float32),
        weights=torch.empty(0),
        biases=torch.empty(0),
    )
    if "labels" in parts:
        rows = {n: start.rows(inputs, target.knowing(folds[n].train)) for n in folds}
    else:
        rows = dict.fromkeys(folds, start.rows(inputs, every))

    def fit(number: int, strength: float) -> tuple[Floats, Floats, Floats]:
        """Weights and biases of one fold, and what is said of what it holds out."""
        steps = _FEW_STEPS if job.out_of_time() else _MOST_STEPS
        train = thinned(folds[number].train, _MOST_ROWS)
        weight, bias = _solve(rows[number][train], target, train, strength, steps)
        held_out = rows[number][folds[number].held_out]
        logits = torch.from_numpy(held_out @ weight + bias)
        shares = logits if target.is_number else logits.softmax(dim=1)
        return weight, bias, shares.numpy().astype(np.float32)

    def score(strength: float) -> float:
        first = next(iter(folds))
        *_, shares = fit(first, strength)
        y = target.values[folds[first].held_out]
        return smooth(target.num_classes, job.metric).function(y, shares)

    best = max(_STRENGTHS, key=score)
    fitted = [fit(number, best) for number in folds]
    weights, biases, held_out = zip(*fitted, strict=True)
    member = replace(
        start,
        weights=torch.from_numpy(np.stack(weights).astype(np.float32)),
        biases=torch.from_numpy(np.stack(biases).astype(np.float32))[:, None],
    )
    return member, job.out_of_fold(held_out)


def _solve(
    rows: Sparse, target: Target, train: Numbers, strength: float, steps: int
) -> tuple[Floats, Floats]:
    """Weights ``[F, width]`` and biases ``[width]`` of one model."""
    from sklearn.linear_model import LogisticRegression, Ridge

    y = target.values[train]
    if target.is_number:
        # Not by sparse_cg, whose steps have no limit where columns outnumber rows.
        ridge = Ridge(1 / strength, solver="lsqr", max_iter=steps, tol=_TOLERANCE)
        ridge.fit(rows, y)
        return ridge.coef_[:, None], np.array([ridge.intercept_])
    weights = np.zeros((rows.shape[1], target.width), dtype=np.float32)
    biases = np.full(target.width, _NEVER, dtype=np.float32)
    if len(classes := np.unique(y)) == 1:  # a fold without the rarer class
        biases[classes] = 0
        return weights, biases
    model = LogisticRegression(C=strength, max_iter=steps, tol=_TOLERANCE)
    model.fit(rows, y)
    if len(classes) == 2:  # one row of weights, for the second class
        first, second = classes
        weights[:, second], biases[first] = model.coef_[0], 0
        biases[second] = model.intercept_[0]
    else:
        weights[:, classes] = model.coef_.T
        biases[classes] = model.intercept_
    return weights, biases
