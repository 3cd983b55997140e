"""One's own graphs: from tables to features, a model that is kept, and predictions."""
