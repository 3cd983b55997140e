"""How fast it is: ratios against plain PyG and against what the hardware allows."""
