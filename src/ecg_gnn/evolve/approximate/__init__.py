"""Approximate search by faiss, with its recall measured."""
