"""One run: baseline, ECG and its controls, trained on the same splits."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.identity import Variant, controls_of
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.embed import Embedder, EmbeddingCache
from ecg_gnn.pipeline.resolve import check_embeddings, choose_variants, resolve
from ecg_gnn.study.comparison import Report, compare, summarize
from ecg_gnn.study.records import Record, RunFolder, mean, measure, provenance
from ecg_gnn.study.units import OnProgress, UnitRunner, run_units
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import check_in_range
from ecg_gnn.system.files import write_json
from ecg_gnn.system.machine import holding

OnRecord = Callable[[Record, int, int], None]
OnReused = Callable[[int, int], None]


@holding("fit")
def run(
    config: RunConfig | None = None,
    *,
    data_root: str | Path | None = None,
    dataset: GraphDataset | None = None,
    out: str | Path | None = None,
    out_root: str | Path | None = None,
    cache: EmbeddingCache | None = None,
    embedders: Mapping[str, Embedder] | None = None,
    jobs: int = 1,
    loader_workers: int = 0,
    on_progress: OnProgress | None = None,
    on_record: OnRecord | None = None,
    on_reused: OnReused | None = None,
) -> Report:
    """Train every variant on every split and compare them.

    Args:
        config: Settings; what is not given comes from the preset.
        data_root: Folder with the official files.
        dataset: Used instead of loading ``config.dataset``.
        out: Output folder; an interrupted run in it is resumed. None writes nothing.
        out_root: Where a folder named after this run is made, if ``out`` is not given.
        cache: Where embeddings are kept; by default only as long as the run lasts.
        embedders: Embedders of your own: ``{"own:degree": DegreeEmbedder()}`` beside
            ``own:degree`` among the config's embeddings.
        jobs: Parallel trainings, each in a process of its own.
        loader_workers: Processes that prepare the batches of a training by batches.
        on_progress: ``(variant and split, work) -> callback(done, total, score)``.
        on_record: Called after every training with ``(record, done, total)``.
        on_reused: Called with how many were in the folder already: ``(count, total)``.

    Examples:
        >>> from ecg_gnn import RunConfig, TrainConfig
        >>> quick = TrainConfig(steps=2)
        >>> report = run(RunConfig(dataset="csbm:nodes=60", splits=(0,), train=quick))
        >>> [row.variant for row in report.results]
        ['baseline', 'ecg', 'identity', 'embedding']
    """
    check_in_range("jobs", jobs, 1, None)
    check_in_range("workers", loader_workers, 0, None)
    config, dataset = prepare(config or RunConfig(), data_root, dataset)
    variants = choose_variants(config)
    contents = check_embeddings(variants, dataset, config, embedders or {})
    run_id = config.run_id(dataset.sha256, *contents)
    if out is None and out_root is not None:
        name = Path(dataset.name).stem.split(":")[0]
        out = Path(out_root) / f"{name}-{config.model.name}-{run_id}"
    made_with = provenance(config.device)
    with TemporaryDirectory(prefix="ecg-gnn-") as temporary:
        folder = RunFolder(Path(temporary if out is None else out))
        about = {"dataset": dataset.name, "dataset_sha256": dataset.sha256}
        folder.claim(run_id, config.to_dict(), **about, provenance=made_with)
        runner = UnitRunner(
            dataset=dataset,
            config=config,
            run_id=run_id,
            made_with=made_with,
            checkpoints=None if out is None else f"{folder.path}/checkpoints/",
            cache=cache or EmbeddingCache(Path(temporary)),
            embedders=embedders or {},
            loader_workers=loader_workers,
            on_progress=on_progress,
        )
        records = _gather(runner, folder, variants, jobs, on_record, on_reused)
        report = _report(dataset, config, records, None if out is None else Path(out))
        write_json(folder.path / "results.json", report.to_dict())
        return report


def prepare(
    config: RunConfig, data_root: str | Path | None, dataset: GraphDataset | None
) -> tuple[RunConfig, GraphDataset]:
    """Load the data, draw splits if asked to, and fill in every setting."""
    if dataset is None:
        dataset = load_dataset(config.dataset, data_root=data_root)
    else:  # the record must not name a graph that was not used
        config = dataclasses.replace(config, dataset=dataset.name)
    if config.random_splits:
        dataset = dataset.with_random_splits(10, config.seed)
    if config.label_rate:
        dataset = dataset.with_label_rate(config.label_rate, config.seed)
    return resolve(config, dataset), dataset


def _gather(
    runner: UnitRunner,
    folder: RunFolder,
    variants: Sequence[Variant],
    jobs: int,
    on_record: OnRecord | None,
    on_reused: OnReused | None,
) -> dict[Variant, list[Record]]:
    # Split by split, so that a run stopped half-way still compares like with like.
    splits = known(runner.config.splits)
    units = [(variant, index) for index in splits for variant in variants]
    kept = {(v, i): folder.load(v.file_name(i)) for v, i in units}
    records = {unit: record for unit, record in kept.items() if record is not None}
    if records and on_reused is not None:
        on_reused(len(records), len(units))
    missing = [unit for unit in units if unit not in records]
    # Closed also after an error: other processes must not go on training.
    with (
        closing(WorkerPool(jobs)) as pool,
        closing(run_units(runner, missing, pool)) as trained,
    ):
        for (variant, index), ended in trained:
            if isinstance(ended, Exception):
                raise ended
            records[variant, index] = ended
            folder.store(variant.file_name(index), ended)
            if on_record is not None:
                on_record(ended, len(records), len(units))
    return {v: [records[v, index] for index in splits] for v in variants}


def _report(
    dataset: GraphDataset,
    config: RunConfig,
    records: dict[Variant, list[Record]],
    folder: Path | None,
) -> Report:
    summaries = {variant: summarize(rows) for variant, rows in records.items()}
    evolved = {
        part: mean([record.evolved_statistics[place] for record in rows])
        for variant, rows in records.items()
        for place, part in enumerate(variant.graphs)
    }
    evolved.pop("identity", None)  # self-loops alone say nothing
    return Report(
        dataset=dataset.name,
        metric=dataset.metric,
        note=dataset.note,
        config=config,
        results=list(summaries.values()),
        comparisons=[
            compare(summary, summaries[other])
            for variant, summary in summaries.items()
            for other in controls_of(variant)
            if other in summaries
        ],
        graph=measure(dataset),
        evolved=evolved,
        records=[record for rows in records.values() for record in rows],
        folder=folder,
    )
