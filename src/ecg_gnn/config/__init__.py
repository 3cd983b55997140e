"""Settings: declared once; options, recipes and parameters follow from that.

``evolve_settings``, ``classify_settings`` and ``run_config`` hold the declarations,
``embedders`` the table of step 1; ``identity`` names what settings decide: variants,
trainings, and the words beside them in tables. Nothing here needs torch.
"""

from ecg_gnn.config.classify_settings import ModelConfig, TrainConfig
from ecg_gnn.config.embedders import (
    CONTROLS,
    EMBEDDERS,
    EMBEDDINGS,
    KEPT_EMBEDDINGS,
    OWN_PREFIX,
    PRECOMPUTED,
    entry_of,
    is_control,
    reads_labels,
)
from ecg_gnn.config.evolve_settings import EmbedConfig, EvolveConfig
from ecg_gnn.config.run_config import SECTIONS, Preset, RunConfig, declared, known
from ecg_gnn.config.setting import Setting

FitConfig = TrainConfig  # its name until 0.1

__all__ = [
    "CONTROLS",
    "EMBEDDERS",
    "EMBEDDINGS",
    "KEPT_EMBEDDINGS",
    "OWN_PREFIX",
    "PRECOMPUTED",
    "SECTIONS",
    "EmbedConfig",
    "EvolveConfig",
    "FitConfig",
    "ModelConfig",
    "Preset",
    "RunConfig",
    "Setting",
    "TrainConfig",
    "declared",
    "entry_of",
    "is_control",
    "known",
    "reads_labels",
]
