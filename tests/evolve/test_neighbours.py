"""Which search is done, where memory does not suffice for it."""

import pytest

from ecg_gnn.evolve import knn_search, neighbours
from evolve.knn_cases import randn


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("std::bad_alloc"), ValueError("other")]
)
def test_an_index_that_does_not_fit_says_what_to_do(error, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(neighbours, "choose_method", lambda *_: "ivf")
    monkeypatch.setattr(neighbours, "search_approximately", fail)
    known = not isinstance(error, ValueError)
    message = r"\(ivf\) among 50 × 8 .* 'knn' exact .* width to 4 \(now 8\)$"
    with pytest.raises(
        MemoryError if known else ValueError, match=message if known else "^other$"
    ):
        knn_search(randn(50, 8), 3)
