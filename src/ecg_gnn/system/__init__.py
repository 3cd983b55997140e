"""Shared basics: checks, files, seeds, memory. Imports no other part of the package."""
