"""What every other part leans on: checks, files, seeds, memory. It imports nobody."""
