"""The advice in plain words, each paragraph from the numbers alone."""

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.budget import format_budget
from ecg_gnn.advise.commands import Asked, longer_budget, next_steps
from ecg_gnn.advise.contenders import PLAIN, Contender
from ecg_gnn.advise.homophily import homophily_words
from ecg_gnn.advise.tables import graph_table, score_table
from ecg_gnn.advise.verdict import WORTH
from ecg_gnn.study.paired import PairedTest
from ecg_gnn.study.paper_tables.document import minus
from ecg_gnn.study.table import markdown
from ecg_gnn.system.metric_names import metric_label

_NO_ROOM = 0.99
_RULE = (
    "(In points, with 95% intervals over the same splits. Called help: an interval "
    f"above zero; called none: one below +{100 * WORTH:.0f}; else: open.)"
)
_CLEAR_CHOICE = 0.005
"""Candidates whose validation scores are nearer than this are as good as each other."""


def answer(advice: Advice) -> str:
    """The verdict with its reason, and of how much it is the verdict."""
    verdict, chosen = advice.verdict, advice.chosen
    text = f"{verdict.headline}: {verdict.because}."
    untried = len(advice.rounds.whole.candidates) - len(advice.plan.candidates)
    if chosen is None or not untried:
        return text
    others = "one other was" if untried == 1 else f"{untried} others were"
    return f"{text} That is {_name(chosen)}; {others} not tried in this time."


def numbers(advice: Advice) -> str:
    """Scores and paired differences behind the verdict."""
    if (chosen := advice.chosen) is None:
        return "Nothing was compared."
    identity, drawn = advice.controls()
    tests, count = advice.tests, len(advice.splits)
    on = f"On {count} splits" if count > 1 else "On the one split"
    parts = [
        f"{on}, {advice.config.model.name} with the evolved graph of {_name(chosen)} "
        f"scores {_percent(advice, chosen)} {metric_label(advice.metric)} on test "
        f"nodes and without it {_percent(advice, PLAIN)}: a difference of "
        f"{_difference(tests['ecg_minus_baseline'])}.",
        "The identity control has the same parameters but, in place of evolved edges, "
        f"a path from each node to itself: {_percent(advice, identity)}. The evolved "
        f"edges are worth {_difference(tests['ecg_minus_identity'])} more than that, "
        f"and {_difference(tests['ecg_minus_random'])} more than as many random edges "
        f"({_percent(advice, drawn)}).",
    ]
    if advice.summary(PLAIN).test_mean > _NO_ROOM:
        parts.append("The plain network leaves next to no room for anything to help.")
    parts.append(_RULE if count > 1 else "One split has no interval: it may be chance.")
    return " ".join(parts)


def choice(advice: Advice) -> str:
    """Which embedding and k, and how clear that was."""
    ranked = advice.ranked()
    if not ranked:
        return "No embedding was chosen."
    best, others = ranked[0], ranked[1:]
    if not others:
        return f"Only {_name(best)} was tried: there was nothing to choose."
    ahead = advice.summary(best).val_mean - advice.summary(others[0]).val_mean
    tried = [f"{_name(each)} {_validation(advice, each)}" for each in ranked]
    text = (
        f"By validation scores alone {_name(best)} is the best of {len(ranked)}: "
        f"{', '.join(tried)}."
    )
    if ahead < _CLEAR_CHOICE:
        text += f" The first two are as good as each other ({100 * ahead:.1f} apart)."
    return text


def cuts(advice: Advice) -> list[str]:
    """What was left out, and why; empty if nothing was."""
    rounds, whole, plan = advice.rounds, advice.rounds.whole, advice.plan
    found = []
    if plan.steps < whole.steps:
        found.append(f"{plan.steps} training steps instead of {whole.steps}")
    dropped = [_name(each) for each in whole.candidates if each not in plan.candidates]
    if dropped:
        found.append(f"not tried: {', '.join(dropped)}")
    done = len(rounds.records)
    if done < len(whole.splits):
        why = {"time": "the time was up", "interrupted": "interrupted", None: ""}
        found.append(f"{done} of {len(whole.splits)} splits: {why[rounds.stop]}")
    return found


def effort(advice: Advice) -> str:
    """How long it took, and what was cut for it."""
    model = advice.config.model
    took = (
        f"Small networks ({model.layers} layers, {model.hidden} wide), one seed. "
        f"Took {format_budget(advice.spent)} of {format_budget(advice.budget)}"
    )
    if not (found := cuts(advice)):
        return f"{took}; nothing was cut."
    text = f"{took}; cut: {'; '.join(found)}."
    needed = longer_budget(advice)
    if needed is not None:
        text += f" All of it would take about {format_budget(needed)}."
    if advice.plan.steps < advice.rounds.whole.steps:
        text += " Trained for longer, the networks may compare otherwise."
    return text


def paragraphs(advice: Advice) -> dict[str, str]:
    """All of it by title, in the order in which it is read."""
    return {
        "Does it help?": numbers(advice),
        "Which embedding and k?": choice(advice),
        "What does homophily say?": homophily_words(advice),
        "How thorough was this?": effort(advice),
    }


def advice_markdown(advice: Advice, asked: Asked, picture: str) -> str:
    """The whole advice as a document; ``picture`` is a line that shows it."""
    parts = [f"# {advice.dataset}: does an evolved graph help?", answer(advice)]
    if advice.note:
        parts.append(f"Note: {advice.note}")
    parts.append(picture)
    for title, text in paragraphs(advice).items():
        parts += [f"## {title}", text]
    parts.append("## What next?")
    for step in next_steps(advice, asked):
        parts.append(f"{step.purpose.capitalize()}:\n\n```bash\n{step.command}\n```")
    if advice.rounds.records:
        parts += ["## All scores", markdown(score_table(advice))]
        parts += ["## All graphs", markdown(graph_table(advice))]
    return "\n\n".join(parts) + "\n"


def _name(contender: Contender) -> str:
    return f"{contender.embedding} (k = {contender.k})"


def _percent(advice: Advice, contender: Contender) -> str:
    return f"{100 * advice.summary(contender).test_mean:.1f}%"


def _validation(advice: Advice, contender: Contender) -> str:
    return f"{100 * advice.summary(contender).val_mean:.1f}%"


def _difference(test: PairedTest) -> str:
    shown = f"{100 * test.mean:+.1f}"
    if test.ci_low is None or test.ci_high is None or test.p is None:
        return minus(shown)
    chance = "p < 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
    ends = f"[{100 * test.ci_low:+.1f}, {100 * test.ci_high:+.1f}]"
    return f"{minus(shown)} {minus(ends)} ({chance})"
