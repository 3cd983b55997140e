"""The GPU twin of the reference: Triton kernels, compiled where they first run."""
