"""Searching a recipe's grid instead of trying all of it: propose, train, prune."""

from ecg_gnn.study.search.search_work import SearchWork
from ecg_gnn.study.search.space import search_spaces
from ecg_gnn.study.search.tpe import Search

__all__ = ["Search", "SearchWork", "search_spaces"]
