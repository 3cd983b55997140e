"""Approximate search, on CPUs by faiss, with its recall measured."""
