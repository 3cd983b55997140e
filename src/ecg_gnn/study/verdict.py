"""What paired differences say of evolved edges, in a word and in a sentence."""

from collections.abc import Mapping

from ecg_gnn.study.comparison import Comparison, Report
from ecg_gnn.study.table import run_name

VERDICTS = {
    "edges": "above baseline, identity and embedding",
    "vectors": "above baseline and identity, not shown to be above embedding",
    "unasked": "above baseline and identity, no embedding control",
    "path": "above baseline, not shown to be above identity",
    "beaten": "above baseline, but identity is better",
    "alone": "above baseline, no identity control",
    "open": "too close to call",
    "worse": "below baseline",
}
_MEANS = {
    "edges": "beats the plain network and both controls: the new edges help",
    "vectors": "beats the plain network and self-loops (identity), but not clearly the "
    "same embedding given as features: that may be all it takes",
    "path": "beats the plain network, but not clearly self-loops in place of the new "
    "edges (identity): the gain need not come from the edges",
    "beaten": "beats the plain network, but self-loops in place of the new edges "
    "(identity) are better still",
    "open": "is too close to the plain network to call",
    "worse": "is worse than the plain network",
}
_FEW = 4


def judge(signs: Mapping[str, int]) -> str:
    """A key of VERDICTS, from signs of ECG minus its rivals; 0 is within chance."""
    if (plain := signs["baseline"]) <= 0:
        return "worse" if plain < 0 else "open"
    if "identity" not in signs:
        return "alone"
    if (path := signs["identity"]) <= 0:
        return "beaten" if path < 0 else "path"
    if "embedding" not in signs:
        return "unasked"
    return "edges" if signs["embedding"] > 0 else "vectors"


def verdict(report: Report) -> list[str]:
    """A sentence on every ECG variant, and a warning where splits are too few."""
    few, words = len(report.config.splits or ()), judged(report)
    said = [f"{n} {_MEANS.get(w, f'is {VERDICTS[w]}')}." for n, w in words.items()]
    if report.comparisons and few < _FEW:
        splits = "One split is" if few == 1 else f"{few} splits are"
        said.append(f"{splits} too few to tell: try more, --splits 0-4.")
    return said


def judged(report: Report) -> dict[str, str]:
    """What ``judge`` says of every ECG variant, by its name."""
    signs: dict[str, dict[str, int]] = {}
    for pair in report.comparisons:
        if pair.variant == "ecg":
            name = run_name(report.config, pair)
            signs.setdefault(name, {})[pair.against] = sign(pair)
    return {name: judge(found) for name, found in signs.items()}


def sign(pair: Comparison) -> int:
    """+1 or −1 where zero is outside the interval, so beyond chance; else 0."""
    if pair.ci_low is None or pair.ci_high is None:
        return 0
    return (pair.ci_low > 0) - (pair.ci_high < 0)
