"""The exact search: the k nearest nodes, provably, the same ones on every device.

``canonical`` and ``ties`` define the result; everything else finds it, ``nearest`` with
all rows in memory (``compiled`` on a CPU, ``gpu`` on a GPU) and ``blocks`` without.
"""
