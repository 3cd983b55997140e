"""The advice as text and tables, written from the numbers alone."""

from ecg_gnn.advise.next_steps import GraphSource, longer_budget, next_steps
from ecg_gnn.advise.question import PLAIN, Contender
from ecg_gnn.advise.time_budget import format_budget
from ecg_gnn.advise.verdict import WORTH, Advice
from ecg_gnn.study.paired_tests import PairedTest
from ecg_gnn.study.records import Statistics
from ecg_gnn.study.run import compare
from ecg_gnn.study.table import Table, format_difference, markdown
from ecg_gnn.study.table import graph_table as statistics_table
from ecg_gnn.system.canvas import minus

_NO_ROOM = 0.99
_CLEAR_CHOICE = 0.005
"""Candidates whose validation scores are closer than this are tied."""
_ALIKE = 0.05
"""Graphs whose adjusted homophily is closer than this are equally homophilous."""
# Whether scores went where homophily pointed: it is more homophilous, and it helps.
_AGREEMENT = {
    (True, True): ", and the scores agree.",
    (True, False): ", and yet its edges do not help: the network may already know what "
    "they say about a node.",
    (False, True): ", and yet it helps: homophily is not the reason.",
    (False, False): ", and the scores agree: its edges add nothing new.",
}
_RULE = (
    "(Differences are in points, with 95% intervals over the same splits. An interval "
    f"above zero counts as help, one below +{100 * WORTH:.0f} as no help; any other "
    "leaves the question open.)"
)


def answer(advice: Advice) -> str:
    """The verdict with its reason, and which candidates it covers."""
    verdict, chosen = advice.verdict, advice.chosen
    text = f"{verdict.headline}: {verdict.because}."
    untried = len(advice.question.whole.candidates) - len(advice.plan.candidates)
    if chosen is None or not untried:
        return text
    others = "one other" if untried == 1 else f"{untried} others"
    return f"{text} This is for {_name(chosen)}; there was no time to try {others}."


def numbers(advice: Advice) -> str:
    """Scores and paired differences behind the verdict."""
    if (chosen := advice.chosen) is None:
        return "Nothing was compared."
    tests, count = advice.tests, len(advice.splits)
    plain, ours, identity, random = (
        f"{100 * advice.summary(each).test_mean:.1f}%"
        for each in (PLAIN, chosen, *advice.plan.controls_of(chosen))
    )
    parts = [
        f"On {f'{count} splits' if count > 1 else 'the only split'}, "
        f"{advice.question.config.model.name} scores {ours} test {advice.metric} with "
        f"the evolved graph of {_name(chosen)} and {plain} without it: a "
        f"difference of {_difference(tests['ecg_minus_baseline'])}.",
        "The identity control has the same parameters, but a path from each node to "
        f"itself in place of the evolved edges; it scores {identity}. Compared with "
        f"it, the evolved edges make a difference of "
        f"{_difference(tests['ecg_minus_identity'])}, and compared with as many random "
        f"edges ({random}) one of {_difference(tests['ecg_minus_random'])}.",
    ]
    if advice.summary(PLAIN).test_mean > _NO_ROOM:
        parts.append("The plain network leaves almost no room for improvement.")
    single = "One split has no interval, so this may be chance."
    return " ".join([*parts, _RULE if count > 1 else single])


def choice(advice: Advice) -> str:
    """Which embedding and k, and how clear that was."""
    if not (ranked := advice.ranked):
        return "No embedding was chosen."
    if len(ranked) == 1:
        return f"Only {_name(ranked[0])} was tried, so there was nothing to choose."
    scores = [advice.summary(each).val_mean for each in ranked]
    pairs = zip(ranked, scores, strict=True)
    tried = ", ".join(f"{_name(each)} {100 * score:.1f}%" for each, score in pairs)
    text = (
        f"{_name(ranked[0])} has the best validation score of {len(ranked)}: {tried}."
    )
    if (ahead := scores[0] - scores[1]) < _CLEAR_CHOICE:
        text += f" The first two are practically tied ({100 * ahead:.1f} apart)."
    return text


def cuts(advice: Advice) -> list[str]:
    """What was left out, and why; empty if nothing was."""
    whole, plan = advice.question.whole, advice.plan
    texts = []
    if plan.steps < whole.steps:
        texts.append(f"{plan.steps} training steps instead of {whole.steps}")
    dropped = [_name(each) for each in whole.candidates if each not in plan.candidates]
    if dropped:
        texts.append(f"not tried: {', '.join(dropped)}")
    if (done := len(advice.rounds)) < len(whole.splits):
        why = "time ran out" if advice.stop == "time" else "interrupted"
        texts.append(f"{done} of {len(whole.splits)} splits: {why}")
    return texts


def effort(advice: Advice) -> str:
    """How long it took, and what was cut."""
    model, whole = advice.question.config.model, advice.question.whole
    spent, budget = format_budget(advice.spent), format_budget(advice.budget)
    text = f"Small networks ({model.layers} layers of width {model.hidden}), one seed. "
    text += f"It took {spent} of {budget}; "
    if not (cut := cuts(advice)):
        return f"{text}nothing was cut."
    text += f"cut: {'; '.join(cut)}."
    if (needed := longer_budget(advice)) is not None:
        text += f" The full comparison would take about {format_budget(needed)}."
    if advice.plan.steps < whole.steps:
        text += " With longer training, it may come out differently."
    return text


def homophily_text(advice: Advice) -> str:
    """Both graphs in numbers, which one is more homophilous, and if that mattered."""
    before = advice.graph
    text = f"In the input graph, {_describe(before)}."
    if advice.chosen is None:
        return text
    after = advice.evolved(advice.chosen)
    text += f" In the evolved graph, {_describe(after)}."
    old, new = before["adjusted_homophily"], after["adjusted_homophily"]
    if old is None or new is None:
        return f"{text} Which of them is more homophilous cannot be said."
    how = "about as" if abs(new - old) < _ALIKE else "more" if new > old else "less"
    helps = advice.verdict.kind == "use_evolved_graph"
    agreement = _AGREEMENT[how == "more", helps]
    if advice.verdict.kind == "cannot_tell":
        agreement = "; whether the scores follow is open."
    text += f" The evolved graph is {how} homophilous{agreement}"
    tells, told = before["label_informativeness"], after["label_informativeness"]
    if how != "more" or tells is None or told is None or told >= tells - _ALIKE:
        return text
    return (
        f"{text} More homophilous does not mean more informative: one neighbour's "
        f"class tells {100 * tells:.0f}% of a node's class in the input graph and "
        f"{100 * told:.0f}% in the evolved one (label informativeness)."
    )


def paragraphs(advice: Advice) -> dict[str, str]:
    """All text by title, in reading order."""
    return {
        "Does it help?": numbers(advice),
        "Which embedding and k?": choice(advice),
        "What does homophily say?": homophily_text(advice),
        "How thorough was this?": effort(advice),
    }


def score_table(advice: Advice) -> Table:
    """Mean ± sample standard deviation, and the paired differences."""
    header = ["variant", f"test {advice.metric} (%)", "validation (%)"]
    header += ["− baseline [95% CI]", "− identity [95% CI]"]
    rows = []
    for each in advice.plan.contenders:
        ours = advice.summary(each)
        deviation = "" if ours.test_std is None else f" ± {100 * ours.test_std:.2f}"
        row = [each.label, f"{100 * ours.test_mean:.2f}{deviation}"]
        row.append(f"{100 * ours.val_mean:.2f}")
        identity = advice.plan.controls_of(each)[0] if each.k is not None else None
        for other in (PLAIN if each != PLAIN else None, identity):
            difference = other and compare(ours, advice.summary(other))
            row.append(format_difference(difference) if difference else "")
        rows.append(row)
    return header, rows


def graph_table(advice: Advice) -> Table:
    """Homophily of G and of every evolved graph, mean over the splits."""
    evolved = [each for each in advice.plan.contenders if each.k is not None]
    graphs = {f"G_ECG ({each.setting})": advice.evolved(each) for each in evolved}
    return statistics_table({"G": advice.graph} | graphs)


def advice_markdown(advice: Advice, source: GraphSource, figure: str) -> str:
    """The whole advice as a document; ``figure`` is the line that shows it."""
    dataset = advice.question.dataset
    parts = [f"# {dataset.name}: does an evolved graph help?", answer(advice)]
    parts += [f"Note: {dataset.note}"] if dataset.note else []
    parts.append(figure)
    for title, text in paragraphs(advice).items():
        parts += [f"## {title}", text]
    parts.append("## What next?")
    for step in next_steps(advice, source):
        parts.append(f"{step.purpose.capitalize()}:\n\n```bash\n{step.command}\n```")
    if advice.rounds:
        parts += ["## All scores", markdown(score_table(advice))]
        parts += ["## All graphs", markdown(graph_table(advice))]
    return "\n\n".join(parts) + "\n"


def _name(contender: Contender) -> str:
    return f"{contender.embedding} (k = {contender.k})"


def _difference(test: PairedTest) -> str:
    text = f"{100 * test.mean:+.1f}"
    if test.ci_low is not None and test.ci_high is not None and test.p is not None:
        chance = "p < 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
        text += f" [{100 * test.ci_low:+.1f}, {100 * test.ci_high:+.1f}] ({chance})"
    return minus(text)


def _describe(graph: Statistics) -> str:
    edge = graph["edge_homophily"]
    if edge is None:
        return "there is no edge between nodes with a class"
    others = {
        "node homophily": graph["node_homophily"],
        "class-insensitive": graph["class_homophily"],
        "adjusted": graph["adjusted_homophily"],
    }
    shown = ", ".join(f"{name} {_number(value)}" for name, value in others.items())
    return f"{100 * edge:.0f}% of edges join nodes of the same class ({shown})"


def _number(value: float | int | None) -> str:
    # Rounded first, and a zero added: there is no −0.00.
    return "undefined" if value is None else minus(f"{round(value, 2) + 0.0:.2f}")
