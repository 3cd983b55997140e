"""A corpus of malformed files, made anew each time and always the same."""
