"""The search on a CPU: what follows the matrix product in C++, built once."""
