"""Settings: declared once; options, recipes and parameters follow from that.

``embedders``, ``classify_settings`` and ``run_config`` hold the declarations, the first
also the table of embedders; ``identity`` names what settings decide: variants,
trainings, and the words beside them in tables. Nothing here needs torch.
"""

from ecg_gnn.config.classify_settings import ModelConfig as ModelConfig
from ecg_gnn.config.classify_settings import TrainConfig as TrainConfig
from ecg_gnn.config.embedders import CONTROLS as CONTROLS
from ecg_gnn.config.embedders import EMBEDDERS as EMBEDDERS
from ecg_gnn.config.embedders import EMBEDDINGS as EMBEDDINGS
from ecg_gnn.config.embedders import KEPT_EMBEDDINGS as KEPT_EMBEDDINGS
from ecg_gnn.config.embedders import OWN_PREFIX as OWN_PREFIX
from ecg_gnn.config.embedders import PRECOMPUTED as PRECOMPUTED
from ecg_gnn.config.embedders import EmbedConfig as EmbedConfig
from ecg_gnn.config.embedders import EvolveConfig as EvolveConfig
from ecg_gnn.config.embedders import entry_of as entry_of
from ecg_gnn.config.embedders import is_control as is_control
from ecg_gnn.config.embedders import reads_labels as reads_labels
from ecg_gnn.config.run_config import Preset as Preset
from ecg_gnn.config.run_config import RunConfig as RunConfig
from ecg_gnn.config.run_config import declared as declared
from ecg_gnn.config.run_config import known as known
from ecg_gnn.config.setting import Setting as Setting

FitConfig = TrainConfig  # its name until 0.1
