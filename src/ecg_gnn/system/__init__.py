"""Shared basics: checks, files, seeds, machine. Imports nothing else of the package."""
