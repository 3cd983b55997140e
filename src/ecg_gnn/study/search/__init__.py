"""Searching a recipe's grid instead of trying all of it: ask, train, tell, prune."""

from ecg_gnn.study.search.options import Search
from ecg_gnn.study.search.work import SearchWork, search_cells

__all__ = ["Search", "SearchWork", "search_cells"]
