"""STEP 1: weak classifiers that embed the nodes, and the controls beside them."""

from ecg_gnn.embed.bgrl import BGRLEmbedder as BGRLEmbedder
from ecg_gnn.embed.cache import EmbeddingCache as EmbeddingCache
from ecg_gnn.embed.cache import check_embedder as check_embedder
from ecg_gnn.embed.cache import describe_embedder as describe_embedder
from ecg_gnn.embed.cache import embed_nodes as embed_nodes
from ecg_gnn.embed.cache import hide_labels as hide_labels
from ecg_gnn.embed.from_edges import PositionEmbedder as PositionEmbedder
from ecg_gnn.embed.from_edges import StructureEmbedder as StructureEmbedder
from ecg_gnn.embed.mlp import MLPEmbedder as MLPEmbedder
from ecg_gnn.embed.plain import FeaturesEmbedder as FeaturesEmbedder
from ecg_gnn.embed.plain import IdentityControl as IdentityControl
from ecg_gnn.embed.plain import OracleControl as OracleControl
from ecg_gnn.embed.plain import PrecomputedEmbedder as PrecomputedEmbedder
from ecg_gnn.embed.plain import RandomControl as RandomControl
from ecg_gnn.embed.protocol import Embedder as Embedder
from ecg_gnn.embed.protocol import SplitMasks as SplitMasks
from ecg_gnn.embed.trained import TrainedModelEmbedder as TrainedModelEmbedder
