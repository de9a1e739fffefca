"""The band of the reliability curve is that of curves fitted to resampled units."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.resampling import bootstrap_weights
from dask_uncert.metrics.reliability_band import reliability_band
from dask_uncert.metrics.resampling_units import patients
from dask_uncert.summaries.stack import Stack


def pooled(n, hits):
    """Isotonic shares of filled bins, by merging neighbours that fall."""
    blocks = []
    for i in np.flatnonzero(n):
        blocks.append([hits[i], n[i], 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    curve = np.full(len(n), np.nan)
    curve[n > 0] = np.repeat([h / m for h, m, _ in blocks], [size for *_, size in blocks])
    return curve


def case(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.6, 0.6, 0.6], (12, 9))
    truth = np.where(rng.random((12, 9)) < 0.5, rng.integers(0, 3, (12, 9)), p.argmax(-1))
    return evaluate(p, truth, classes={0: "a", 1: "b", 2: "c"}, measures=["gini"])


def test_band_is_the_quantiles_of_refitted_curves():
    parts = [case(seed) for seed in range(4)]
    names = tuple("abcd")
    units = patients(Stack.of(dict(zip(names, parts, strict=True))))
    confidence = Confidence(replicates=40, level=0.8, seed=3)
    band = reliability_band(units, confidence)
    counts = np.stack([np.stack(part.stated.binned(part.stated.fine)[:2]) for part in parts])  # units, 2, bins
    filled = counts[:, 0].sum(0) > 0
    drawn = [pooled(*np.tensordot(w, counts, 1))[filled] for w in bootstrap_weights(names, range(40), 3)]
    assert_allclose(band.low, np.nanquantile(drawn, 0.1, axis=0), atol=1e-12)
    assert_allclose(band.high, np.nanquantile(drawn, 0.9, axis=0), atol=1e-12)
    assert_allclose(band.curve, pooled(*counts.sum(0))[filled], atol=1e-12)
    assert band.units == 4
    assert (band.high - band.low).max() > 0.01


def test_equal_units_have_no_width_and_one_unit_has_no_band():
    part, confidence = case(1), Confidence(replicates=20)
    band = reliability_band(patients(Stack.of({"a": part, "b": part})), confidence)
    assert_array_equal(band.low, band.high)
    assert_allclose(band.low, band.curve)
    assert reliability_band(patients(Stack.of({"a": part})), confidence) is None
