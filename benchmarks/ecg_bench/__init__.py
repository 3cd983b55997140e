"""How fast it is: ratios against plain PyG and against what the hardware allows."""

NOISE = {"random": None, "clusters": 0.3, "tight-clusters": 0.03}
"""Test data: how far its rows scatter about eighteen centres; None for no centres.
Float32 cannot tell neighbours in the tight ones apart."""
