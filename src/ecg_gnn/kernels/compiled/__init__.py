"""The CPU twin of the reference: one C++ file, built once and cached."""
