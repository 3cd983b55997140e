"""What a network reads of some nodes: rows of features, and labels where asked for."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.reading import MappedFile
from ecg_gnn.scale.draws import uniform
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import Task


class NodeInputs:
    """Rows of the features, read when they are needed; a file may hold them.

    Where training labels are input (see ``ecg_gnn.train.labels``), they come in further
    columns: those of training nodes, and only of those that give theirs.

    Args:
        task: Whose nodes, on the host.
        file: Where the features lie, if they were left there.
    """

    def __init__(self, task: Task, file: MappedFile | None = None) -> None:
        self._x: Tensor | None = task.x
        self._file, self._labels = file, task.labels
        self._trains = torch.zeros(task.x.size(0), dtype=torch.bool)
        self._trains[task.train_index] = True
        self.y = task.y

    def __getstate__(self) -> dict[str, Any]:
        """A worker process opens the file itself: its contents are sent to nobody."""
        return self.__dict__ | ({} if self._file is None else {"_x": None})

    def for_training(
        self, nodes: Tensor, num_seeds: int, seed: int, step: int
    ) -> tuple[Tensor, Tensor | None]:
        """The rows, and how much each seed counts: one that gives its label does not.

        Whether a node gives its label is decided by (seed, step, node) alone.
        """
        if self._labels is None:
            return self._rows(nodes), None
        drawn = uniform(nodes.numpy(), derive_seed(seed, "labels", step))
        gives = torch.from_numpy(drawn < self._labels.rate) & self._trains[nodes]
        learned = (~gives[:num_seeds]).to(torch.float32)
        return self._with_labels(nodes, gives), learned

    def for_evaluation(self, nodes: Tensor) -> Tensor:
        """The rows; every training node gives its label, if any does."""
        if self._labels is None:
            return self._rows(nodes)
        return self._with_labels(nodes, self._trains[nodes])

    def _with_labels(self, nodes: Tensor, gives: Tensor) -> Tensor:
        assert self._labels is not None
        classes = torch.arange(self._labels.num_classes)
        shown = (self.y[nodes, None] == classes) & gives[:, None]
        rows = self._rows(nodes)
        return torch.cat([rows, shown.to(rows.dtype)], dim=1)

    def _rows(self, nodes: Tensor) -> Tensor:
        if self._file is not None:
            self._file.check()
        if self._x is None:
            assert self._file is not None
            self._x = torch.from_numpy(np.asarray(self._file.array()))
        return self._x[nodes]
