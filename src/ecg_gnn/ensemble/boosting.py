"""Gradient boosting over a node's row of the neighbour table, by LightGBM."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch

from ecg_gnn.ensemble.inputs import (
    ALL,
    Floats,
    GraphInputs,
    Rows,
    Target,
    neighbour_table,
)
from ecg_gnn.ensemble.members import Fitted, Job, Member, Plain, Tensors
from ecg_gnn.ensemble.tree_texts import checked_trees, tensor_to_text, text_to_tensor
from ecg_gnn.system.machine import cached_property

_PATIENCE, _MOST_ROUNDS = 40, 1000
# Of a table's columns, what a tree looks at; more take time and are hardly better.
_SHARE, _MOST_COLUMNS = 0.3, 100
_PARAMETERS: dict[str, Any] = {
    "learning_rate": 0.06,
    "num_leaves": 15,
    "min_data_in_leaf": 10,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "max_bin": 63,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
}


@dataclass(frozen=True, eq=False)
class BoostingMember(Member):
    """Trees of one model per fold, as LightGBM writes them."""

    kind: ClassVar[str] = "boosting"
    of_folds = ("trees",)

    parts: tuple[str, ...]  # what is read beside own features, see neighbour_table
    trees: tuple[str, ...]  # a text per fold

    @cached_property
    def boosters(self) -> list[Any]:
        """The models, ready to predict."""
        import lightgbm

        return [lightgbm.Booster(model_str=text) for text in self.trees]

    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        """The mean over folds; trees take nearly as long to predict as to learn."""
        table = neighbour_table(inputs, self.parts, target)[rows]
        # LightGBM would refuse other columns in lines of its own.
        if any(one.num_feature() != table.shape[1] for one in self.boosters):
            raise ValueError(f"its trees read other columns than {table.shape[1]}")
        each = [_shares(booster.predict(table), target) for booster in self.boosters]
        return np.asarray(np.mean(each, axis=0), dtype=np.float32)

    def state(self) -> tuple[Plain, Tensors]:
        texts = {str(place): text_to_tensor(t) for place, t in enumerate(self.trees)}
        return {"parts": list(self.parts)}, texts

    @classmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> Self:
        written = (tensor_to_text(tensors[str(k)]) for k in range(len(tensors)))
        texts = tuple(checked_trees(text, width) for text in written)
        return cls(width, tuple(plain["parts"]), texts)


def fit_boosting(
    parts: Sequence[str], seed: int, job: Job, random_splits: bool = False
) -> Fitted:
    """Boost all folds side by side until their mean loss on held-out nodes rises.

    A number of trees that each fold chose for itself would flatter it. With random
    splits (extremely randomised trees) they err differently.
    """
    import lightgbm

    inputs, target, folds = job.inputs, job.target, job.folds
    objective = {0: "regression", 2: "binary"}.get(target.num_classes, "multiclass")
    objective += "_l1" if job.metric == "mae" else ""
    parameters = _PARAMETERS | {
        "objective": objective,
        "seed": seed,
        "num_threads": torch.get_num_threads(),
        "extra_trees": random_splits,
    }
    if objective == "multiclass":
        parameters["num_class"] = target.num_classes
    boosters, held_out = [], []
    for fold in folds.values():
        rows = neighbour_table(inputs, parts, target.knowing(fold.train))
        share = min(_SHARE, _MOST_COLUMNS / rows.shape[1])
        parameters["feature_fraction"] = share
        learned, judged = (
            (rows[part], target.values[part]) for part in (fold.train, fold.held_out)
        )
        data = lightgbm.Dataset(*learned, params=parameters)
        boosters.append(lightgbm.Booster(parameters, data.construct()))
        boosters[-1].add_valid(data.create_valid(*judged, params=parameters), "out")
        held_out.append(rows[fold.held_out])
    best_round, best_loss = 1, np.inf
    for number in range(1, _MOST_ROUNDS + 1):
        # With many classes a round takes a while: time may run out between folds.
        in_time = (b for b in boosters if number == 1 or not job.out_of_time())
        finished = [booster.update() for booster in in_time]
        if len(finished) < len(boosters):
            break
        loss = float(np.mean([booster.eval_valid()[0][2] for booster in boosters]))
        if loss < best_loss:
            best_round, best_loss = number, loss
        stalled = number - best_round >= _PATIENCE
        if stalled or all(finished) or job.out_of_time():
            break
    predicted = [
        _shares(booster.predict(rows, num_iteration=best_round), target)
        for booster, rows in zip(boosters, held_out, strict=True)
    ]
    trees = [booster.model_to_string(num_iteration=best_round) for booster in boosters]
    member = BoostingMember(target.width, tuple(parts), tuple(trees))
    return member, job.out_of_fold(predicted)


def _shares(predicted: Any, target: Target) -> Floats:
    """Predictions as ``[n, width]``."""
    if target.num_classes == 2:
        predicted = np.column_stack([1 - predicted, predicted])
    shares = np.asarray(predicted, dtype=np.float32)
    return shares.reshape(len(shares), target.width)
