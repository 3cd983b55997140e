"""Whether an evolved graph helps on a graph: an answer within a time budget.

advice = advise(make_question(load_dataset("minesweeper-gen")), Stopwatch(60))
print(verdict(advice))
"""

from ecg_gnn.advise.advice import Advice as Advice
from ecg_gnn.advise.advice import Stopwatch as Stopwatch
from ecg_gnn.advise.advice import advise as advise
from ecg_gnn.advise.question import make_question as make_question
from ecg_gnn.advise.report import verdict as verdict
