"""The package's version, on its own so that packaging need not import torch."""

__version__ = "0.1.0"
