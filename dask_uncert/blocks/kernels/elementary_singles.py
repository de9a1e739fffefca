"""Elementary functions in float32, made of IEEE basic operations as those of `elementary`."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.elementary import inline

F, I32 = np.float32, np.int32
NOTHING, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
ONE_BITS, SQRT_HALF_BITS, MANTISSA = I32(0x3F800000), I32(0x3F3504F3), I32(23)
# log2(1 + f) / f for f from sqrt(1/2) - 1 to sqrt(2) - 1, fitted at Chebyshev points: f times it is within 9e-8.
(L0, L1, L2, L3, L4, L5, L6, L7) = (
    F(1.4426949),
    F(-0.721352756),
    F(0.48092404),
    F(-0.360241979),
    F(0.287075609),
    F(-0.24882181),
    F(0.23420985),
    F(-0.146203533),
)


@inline
def logarithm(x):
    """Return ln x for normal x > 0, by fdlibm's logf: within .9 ulp."""
    bits = F(x).view(np.int32)
    k = I32(I32(bits - SQRT_HALF_BITS) >> MANTISSA)  # in int64, half as many would fit into a SIMD register
    f = I32(bits - I32(k << MANTISSA)).view(np.float32) - ONE
    s = f / (TWO + f)
    z = s * s
    w = z * z
    r = z * (F(0.66666662693) + w * F(0.28498786688)) + w * (F(0.40000972152) + w * F(0.24279078841))
    half, scale = HALF * f * f, F(k)
    return scale * F(6.9313812256e-01) - ((half - (s * (half + r) + scale * F(9.0580006145e-06))) - f)


@inline
def binary_logarithm(x):
    """Return log2 x, off by up to 1e-7, for normal x from 0 to 1; something finite for 0, and for less than 2**-126."""
    bits = F(x).view(np.int32)
    k = I32(I32(bits - SQRT_HALF_BITS) >> MANTISSA)  # in int64, half as many would fit into a SIMD register
    f = I32(bits - I32(k << MANTISSA)).view(np.float32) - ONE
    z = f * f
    low, high = (L0 + L1 * f) + (L2 + L3 * f) * z, (L4 + L5 * f) + (L6 + L7 * f) * z
    return F(k) + f * (low + high * (z * z))


@inline
def arcsine(x):
    """Return arcsin x for 0 <= x <= 1, by fdlibm's asinf."""
    small = x < HALF
    z = x * x if small else HALF * (ONE - x)
    p = z * (F(1.6666586697e-01) + z * (F(-4.2743422091e-02) + z * F(-8.6563630030e-03)))
    r = p / (ONE + z * F(-7.0662963390e-01))
    s = np.sqrt(z)
    return x + x * r if small else F(1.5707963268) - TWO * (s + s * r)
