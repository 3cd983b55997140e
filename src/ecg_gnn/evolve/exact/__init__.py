"""The exact search: the k nearest nodes, provably, the same ones on every device.

``canonical`` and ``ties`` define the result; ``nearest`` finds it, on a CPU with
candidates from ``compiled``.
"""
