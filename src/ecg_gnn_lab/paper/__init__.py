"""Numbers of the paper and of others, as data, to compare ours with."""
