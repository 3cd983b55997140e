"""The exact search where not all rows are in memory: blocks of rows, pieces of all."""
