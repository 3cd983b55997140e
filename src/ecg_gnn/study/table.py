"""The tables of one run, from what it found."""

from ecg_gnn.study.compare import Comparison, Summary
from ecg_gnn.study.run import Report

Table = tuple[list[str], list[list[str]]]

METRIC_NAMES = {"accuracy": "accuracy", "roc_auc": "ROC AUC"}
STATISTICS = {
    "num_edges": "edges",
    "edge_homophily": "h_edge",
    "node_homophily": "h_node",
    "class_homophily": "h_class",
    "adjusted_homophily": "h_adj",
    "label_informativeness": "LI",
}


def row_name(variant: str, embedding: str | None) -> str:
    """How a variant is called in tables and figures."""
    if variant == "ecg":
        return f"ECG ({embedding})"
    if variant == "oracle":
        return f"{embedding} (sees test labels)"
    if embedding and "," in embedding:
        return f"{variant} ×{embedding.count(',') + 1}"
    return variant


def model_name(backbone: str, model: str) -> str:
    """How a model is called: the benchmark's backbone goes without saying."""
    return model if backbone == "benchmark" else f"{backbone} {model}"


def result_table(report: Report) -> Table:
    """Mean ± sample standard deviation, and the paired differences."""
    header = ["variant", f"test {METRIC_NAMES[report.metric]} (%)", "validation (%)"]
    header += ["− baseline [95% CI]", "− identity [95% CI]"]
    rows = []
    for row in report.results:
        cells = [row_name(row.variant, row.embedding), _score(row)]
        cells.append(f"{100 * row.val_mean:.2f}")
        cells += [_difference(report, row, other) for other in ("baseline", "identity")]
        rows.append(cells)
    return header, rows


def statistics_table(report: Report) -> Table:
    """The paper's statistics row of G and of every evolved graph."""
    graphs = {"G": report.graph} | {
        f"G_ECG ({name})": found for name, found in report.evolved.items()
    }
    header = ["graph", *STATISTICS.values()]
    rows = [
        [name, *(format_statistic(key, found[key]) for key in STATISTICS)]
        for name, found in graphs.items()
    ]
    return header, rows


def format_statistic(key: str, value: float | int | None) -> str:
    """A statistic as people read it."""
    if value is None:
        return "undefined"
    return f"{value:,.0f}" if key == "num_edges" else f"{value:.3f}"


def markdown(table: Table) -> str:
    """A table in Markdown."""
    header, rows = table
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def report_markdown(report: Report) -> str:
    """Both tables with what must be said beside them."""
    config = report.config
    splits = len(config.splits or ())
    lines = [
        f"# {report.dataset}: {config.model.name}",
        "",
        f"{splits} splits, {config.train.steps} steps, seed {config.seed}, "
        f"k = {config.evolve.k}, self-loops {config.evolve.self_loops}; "
        "mean ± sample standard deviation.",
    ]
    if report.note:
        lines += ["", f"Note: {report.note}"]
    lines += ["", markdown(result_table(report)), ""]
    lines += ["Homophily before and after (evolved graphs: mean over splits):", ""]
    return "\n".join([*lines, markdown(statistics_table(report)), ""])


def _score(row: Summary) -> str:
    mean = f"{100 * row.test_mean:.2f}"
    return mean if row.test_std is None else f"{mean} ± {100 * row.test_std:.2f}"


def _difference(report: Report, row: Summary, other: str) -> str:
    found = [
        comparison
        for comparison in report.comparisons
        if (comparison.variant, comparison.embedding) == (row.variant, row.embedding)
        and comparison.against == other
    ]
    return format_difference(found[0]) if found else ""


def format_difference(comparison: Comparison) -> str:
    """A difference in points with its interval."""
    text = f"{100 * comparison.mean_difference:+.2f}"
    if comparison.ci_low is None or comparison.ci_high is None:
        return text
    return f"{text} [{100 * comparison.ci_low:+.2f}, {100 * comparison.ci_high:+.2f}]"
