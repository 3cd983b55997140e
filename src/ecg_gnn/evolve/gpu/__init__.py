"""The search on a GPU: Triton kernels, compiled where they first run."""
