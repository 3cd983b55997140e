"""The laboratory: reproduces the paper with ecg_gnn, which never imports it."""
