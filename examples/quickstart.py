"""Compare the plain network, ECG and its controls in a few lines."""

from ecg_gnn import ModelConfig, RunConfig, TrainConfig, run

report = run(
    RunConfig(
        dataset="minesweeper-gen:rows=30,cols=30",
        splits=(0, 1, 2),
        model=ModelConfig(name="gcn", hidden=32),
        train=TrainConfig(steps=50, lr=1e-2),
    )
)
for row in report.results:
    print(f"{row.variant:>10}  {100 * row.test_mean:.2f} ± {100 * row.test_std:.2f}")
