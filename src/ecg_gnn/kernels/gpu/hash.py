"""The hash of ``kernels.randomness``, bit for bit."""

import triton
import triton.language as tl


@triton.jit
def _mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def survives(place, seed, threshold):
    """Which places a drawing keeps; ``seed`` points to its 64 bits."""
    bits = tl.load(seed)
    low, high = bits.to(tl.uint32), (bits >> 32).to(tl.uint32)
    return _mix(_mix(place.to(tl.uint32) + low) ^ high) >= threshold
