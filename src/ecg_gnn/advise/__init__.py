"""Whether an evolved graph helps on one's graph: an answer within a time budget.

question = make_question(load_dataset("minesweeper-gen"))
print(advise(question, Stopwatch(60)).verdict.headline)
"""

from ecg_gnn.advise.question import Question, make_question
from ecg_gnn.advise.rounds import advise
from ecg_gnn.advise.time_budget import Stopwatch
from ecg_gnn.advise.verdict import Advice, Verdict
from ecg_gnn.system.checks import parse_budget

__all__ = ["Advice", "Question", "Stopwatch", "Verdict", "advise", "make_question"]
__all__ += ["parse_budget"]
