"""The tables of one run, and the names of models and variants in all tables."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ecg_gnn.config import RunConfig, identity
from ecg_gnn.config.embedders import AS_INPUT
from ecg_gnn.config.identity import Tags, run_tags, tagged
from ecg_gnn.study.comparison import Comparison, Report, Summary
from ecg_gnn.study.records import RECALL, Record, Statistics
from ecg_gnn.study.records import STATISTICS as STATISTICS
from ecg_gnn.system.cells import Table, markdown
from ecg_gnn.system.checks import metric_label

if TYPE_CHECKING:
    from ecg_gnn.study.store import Configuration


def row_name(variant: str, embedding: str | None, tags: Tags = ()) -> str:
    """The name of a variant in tables and figures."""
    name = variant
    if variant == "ecg":
        name = f"ECG ({embedding})"
    elif variant == "embedding":
        of = identity.controlled_embedding(embedding)
        alone = " alone" if of == embedding else ""
        name = f"embedding{alone} ({str(of).replace(AS_INPUT, '')})"
    elif variant == "oracle":
        name = f"{embedding} (sees test labels)"
    elif embedding and "," in embedding:
        name = f"{variant} ×{embedding.count(',') + 1}"
    return tagged(name, tags)


def run_name(config: RunConfig, row: Record | Summary | Comparison) -> str:
    """The name of a run's variant, including options past the paper."""
    return row_name(row.variant, row.embedding, run_tags(config, row.embedding))


def full_name(at: "Configuration") -> str:
    """Dataset, model and variant of a stored configuration."""
    model = f"{model_name(at.backbone, at.model)} " if at.task == "train" else ""
    return f"{at.dataset} {model}{row_name(at.variant, at.embedding, at.tags)}"


def graph_name(config: RunConfig, embedding: str) -> str:
    """The name of one of a run's evolved graphs."""
    name = tagged(embedding, run_tags(config, embedding, "statistics"))
    return f"G_ECG ({name})"


def model_name(backbone: str, model: str) -> str:
    """The name of a model; the benchmark's backbone is not mentioned."""
    return model if backbone == "benchmark" else f"{backbone} {model}"


def result_table(report: Report) -> Table:
    """Mean ± sample standard deviation, and the paired differences."""
    header = ["variant", f"test {metric_label(report.metric)} (%)", "validation (%)"]
    rivals = ("baseline", "identity", "embedding")
    header += [f"− {rival} [95% CI]" for rival in rivals]
    differences = {
        (each.variant, each.embedding, each.against): format_difference(each)
        for each in report.comparisons
    }
    rows = []
    for row in report.results:
        name, score = (row.variant, row.embedding), f"{100 * row.test_mean:.2f}"
        score += "" if row.test_std is None else f" ± {100 * row.test_std:.2f}"
        cells = [run_name(report.config, row), score, f"{100 * row.val_mean:.2f}"]
        rows.append([*cells, *(differences.get((*name, r), "") for r in rivals)])
    return header, rows


def statistics_table(report: Report) -> Table:
    """The paper's statistics row of G and of every evolved graph."""
    evolved = {graph_name(report.config, n): row for n, row in report.evolved.items()}
    return graph_table({"G": report.graph, **evolved})


def graph_table(graphs: Mapping[str, Statistics]) -> Table:
    """Statistics of graphs by name, with the recall if one is approximate."""
    shown = dict(STATISTICS)
    if any(RECALL in row for row in graphs.values()):
        shown[RECALL] = "kNN recall"
    rows = [
        [name, *(format_statistic(k, row[k]) if k in row else "" for k in shown)]
        for name, row in graphs.items()
    ]
    return ["graph", *shown.values()], rows


def format_statistic(key: str, value: float | int | None) -> str:
    """A statistic as text."""
    if value is None:
        return "undefined"
    return f"{value:,.0f}" if key == "num_edges" else f"{value:.3f}"


def report_markdown(report: Report) -> str:
    """Both tables with the notes that belong to them."""
    config = report.config
    parts = [
        f"# {report.dataset}: {config.model.name}",
        f"{len(config.splits or ())} splits, {config.train.steps} steps, seed "
        f"{config.seed}, k = {config.evolve.k}, self-loops {config.evolve.self_loops}; "
        "mean ± sample standard deviation.",
        *(f"Note: {note}" for note in run_notes(report)),
        markdown(result_table(report)),
        "Homophily before and after (evolved graphs: mean over splits):",
        markdown(statistics_table(report)),
    ]
    return "\n\n".join(parts) + "\n"


def run_notes(report: Report) -> list[str]:
    """The notes that belong to a run's tables."""
    rows = [run_tags(report.config, row.embedding) for row in report.results]
    notes = identity.explain(tag for tags in rows for tag in tags)
    notes += [
        f"{graph_name(report.config, name)} is approximate: its search found "
        f"{row[RECALL]:.1%} of the true neighbours of a sample of nodes."
        for name, row in report.evolved.items()
        if row.get(RECALL) is not None
    ]
    return [report.note, *notes] if report.note else notes


def format_difference(comparison: Comparison) -> str:
    """A difference in points with its interval."""
    text = f"{100 * comparison.mean_difference:+.2f}"
    if comparison.ci_low is None or comparison.ci_high is None:
        return text
    return f"{text} [{100 * comparison.ci_low:+.2f}, {100 * comparison.ci_high:+.2f}]"
