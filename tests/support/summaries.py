"""Summaries with drawn counts."""

import dataclasses

import numpy as np

from dask_uncert.formulas.fixed_point import FRACTION_BITS, decode
from dask_uncert.formulas.power_sums import BOUNDED
from dask_uncert.summaries.summary import Summary


def filled(summary, seed, share=1.0, most=2**55):
    """Return an equal frame with drawn counts, up to `most`, in about this share of the cells; the others are 0."""
    rng = np.random.default_rng(seed)

    def draw(value):
        changes = {}
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if "dims" in field.metadata:
                counts = rng.integers(1, most, inner.shape)
                changes[field.name] = np.where(rng.random(inner.shape) < share, counts, 0)
            elif isinstance(inner, Summary):
                changes[field.name] = draw(inner)
            elif isinstance(inner, tuple) and inner and isinstance(inner[0], Summary):
                changes[field.name] = tuple(draw(part) for part in inner)
        return dataclasses.replace(value, **changes)

    return draw(summary)


def powers_of(sums, resolution=BOUNDED):
    """Return sums of the first powers (..., width) as floats (..., powers)."""
    bits = resolution.bits
    powers = 2 if sums.shape[-1] == resolution.width(2) else 3
    parts = [sums[..., resolution.width(k) : resolution.width(k + 1)] for k in range(powers)]
    return np.stack([decode(part) * 2.0 ** (FRACTION_BITS - bits * (k + 1)) for k, part in enumerate(parts)], axis=-1)
