"""Kernels fed with nonsense: both engines say the same of every vector, and no index is out of range."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.blocks.encoding import rounding_of, three_axes
from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.blocks.kernels.bins import find_bin, find_bins
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.types import MISSING, OFF, finder
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.measures import MEASURES, parse_measure
from dask_uncert.inputs.cube import Precision
from dask_uncert.summaries.distribution import edges_with, value_edges_with
from tests.support.summaries import powers_of

DTYPES = {
    "float16": None, "float32": None, "float64": None, "uint8": 1 / 255, "uint16": 1 / 65535, "int32": 1e-6,
}  # fmt: skip
MEASURED = [
    "gini", "entropy", "fisher_rao", "renyi", "tsallis", "t_entropy", "variance", "max_probability", "margin", "confused_classes",
    {"renyi": {"alpha": 100}}, {"renyi": {"alpha": math.inf}}, {"tsallis": {"alpha": 1e5}}, {"renyi": {"alpha": 320}}, {"renyi": {"alpha": 1e300}},
    {"geometric": {"distance": "renyi", "alpha": 0.01, "n": 1000}},
]  # fmt: skip


def nonsense(rng, pixels, classes, dtype):
    """Return vectors of which half are probabilities, and the others hold or are nonsense."""
    p = rng.dirichlet(np.full(classes, 0.3), pixels)
    if DTYPES[dtype]:
        limits = np.iinfo(dtype)
        p = np.rint(p / DTYPES[dtype])
        special = np.array([0, 1, limits.min, limits.max, limits.max // 2, 1 / DTYPES[dtype]])
    else:
        limits = np.finfo(dtype)
        small = float(limits.smallest_subnormal)
        special = np.array(
            [math.nan, math.inf, -math.inf, small, -small, float(limits.tiny), -0.0, 0, 1, -1, 1 + 1e-3, limits.max, limits.min]
        )  # fmt: skip
    kind = rng.integers(0, 10, pixels)[:, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.where((kind == 0) & (rng.random(p.shape) < 0.5), rng.choice(special, p.shape), p)
        p = np.where(kind == 1, rng.choice(special, (pixels, 1)), p)
        p = np.where(kind == 2, p * rng.choice([0.0, -1.0, 0.5, 1.3, 1e-320, 1e-30], (pixels, 1)), p)
        p = np.where((kind == 3) & (np.arange(classes) > 0), -0.0, p)
        p = np.where(kind == 4, np.eye(classes)[rng.integers(0, classes, pixels)] / (DTYPES[dtype] or 1), p)
        return p.astype(dtype)


def same_measures(p, rounding):
    """Both engines agree on state, decisions and measures of (n, classes, 1), whatever is tolerated."""
    measures = tuple(parse_measure(measure) for measure in MEASURED)
    wanted, found = (
        engine.measure(p, np.arange(len(p)), measures, (1.0,) * len(measures), rounding)
        for engine in (reference, compiled)
    )
    with np.errstate(invalid="ignore"):
        off = np.abs(np.clip(p.astype(np.float64), 0, 1).sum(axis=(1, 2)) - 1)
        clear = ~((np.abs(off - rounding.tolerance) < 1e-13) | (np.abs(off - rounding.exact) < 1e-13))
    assert np.array_equal(found.state[clear], wanted.state[clear])
    usable = clear & (wanted.state & (MISSING | OFF) == 0)
    for name in ("predicted", "second", "confused", "confidence"):
        assert np.array_equal(getattr(found, name)[usable], getattr(wanted, name)[usable]), name
    for pixels in (found, wanted):
        inside = pixels.values[: MEASURED.index("confused_classes"), usable]
        assert ((inside >= 0) & (inside <= 1)).all()
        assert ((pixels.predicted >= 0) & (pixels.predicted < p.shape[1])).all()
        assert ((pixels.second >= 0) & (pixels.second < p.shape[1])).all()
    # exp(alpha ln p) multiplies the rounding of ln p by alpha
    least = 1e-11 if p.dtype == np.float64 else 2e-6
    allowed = [max(least, measure.alpha * 2**-52 if measure.kind == "tsallis" else 0) for measure in measures]
    for row, other, atol in zip(found.values[:, usable], wanted.values[:, usable], allowed, strict=True):
        np.testing.assert_allclose(row, other, rtol=0, atol=atol)


def same_counts(p, y, scale, options):
    """Both engines count the same of (n, classes), as probabilities and as samples."""
    found, wanted = (
        du.evaluate(
            du.Input(p, out_of_tolerance="leave_out", **scale), y,
            samples=[du.Input(q, out_of_tolerance="leave_out", **scale) for q in (p, p[::-1].copy())],
            engine=engine, **options,
        )
        for engine in ("compiled", "reference")
    )  # fmt: skip
    assert found.ledger == wanted.ledger
    assert found.decisions == wanted.decisions
    assert found.ledger.counted > 0
    least = 1e-11 if p.dtype == np.float64 or scale.get("scale") else 1e-5
    for a, b in zip(found.distributions, wanted.distributions, strict=True):
        assert np.array_equal(a.histogram.sum(axis=-1), b.histogram.sum(axis=-1))
        np.testing.assert_allclose(powers_of(a.by_pair), powers_of(b.by_pair), rtol=0, atol=len(p) * least)
    for a, b in zip(found.soft_confusion, wanted.soft_confusion, strict=True):
        np.testing.assert_allclose(decode(a.weights), decode(b.weights), rtol=0, atol=len(p) * least)
    for a, b in zip(found.joint, wanted.joint, strict=True):
        of_p = [k for k, (_, j) in enumerate(a.settings.powers) if j == 0]  # u may round across an edge of its bins
        assert np.array_equal(a.moments.sum(axis=2)[..., of_p], b.moments.sum(axis=2)[..., of_p])


def fuzz(vectors, seed=0, pixels=1000):
    rng = np.random.default_rng(seed)
    for number in range(math.ceil(vectors / pixels)):
        dtype = [*DTYPES][number % len(DTYPES)]
        classes = int(rng.choice([2, 3, 9]))
        p = nonsense(rng, pixels, classes, dtype)
        p.setflags(write=False)
        stored, kept = three_axes(p, 1, DTYPES[dtype])
        for tolerance in (None, 0.9, 5.0, 1e300):
            same_measures(stored, rounding_of(kept, classes, Precision(DTYPES[dtype], tolerance)))
        options = {
            "measures": ["gini", "renyi", "entropy", "confused_classes", "mutual_information", "variation_ratio"],
            "soft_confusion": [{"thresholds": [0.3], "sigmas": [0, 0.1], "dampings": [1, math.inf], "uncertainty": "gini"}],
            "calibration": {"bins": int(rng.integers(1, 40))},
        }  # fmt: skip
        scale = {"scale": DTYPES[dtype]} if DTYPES[dtype] else {}
        if number % 2:
            scale["tolerance"] = 0.99
        same_counts(p, rng.integers(0, classes, pixels), scale, options)


@pytest.mark.slow
def test_engines_agree_on_nonsense():
    fuzz(900, pixels=150)


@pytest.mark.slow
def test_engines_agree_on_a_million_vectors_of_nonsense():
    fuzz(10**6, seed=1, pixels=20_000)


@pytest.mark.slow
def test_no_index_is_out_of_range(tmp_path):
    script = "from tests.blocks.kernels.test_fuzz import *; fuzz(6000, seed=2); test_every_value_has_a_bin()"
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_every_value_has_a_bin():
    values = np.array([math.nan, math.inf, -math.inf, -1, -0.0, 5e-324, 1 + 1e-9, 7, 1e19, 1e308, -1e308])
    for edges in (
        (0.0, 0.5, 1.0),
        (0.0, 1.0),
        edges_with((0.5, 0.5 + 1e-9), 1.0),
        edges_with((1e-5, 2e-5), 1.0),
        value_edges_with((1e-5, 0.5), 1.0),
    ):
        table, strip, bins = finder(edges, 1.0, len(edges) > 2000), np.zeros(STRIP), np.empty(STRIP, np.int64)
        strip[: values.size] = values
        find_bins(strip, strip, table, bins)
        one_by_one = [find_bin(value, value, table) for value in values]
        assert bins[: values.size].tolist() == one_by_one
        clipped = np.clip(values[1:], 0, 1)
        wanted = np.maximum(np.searchsorted(edges, clipped, side="left") - 1, 0)
        assert one_by_one[1:] == wanted.tolist()
        assert 0 <= one_by_one[0] < len(edges) - 1


@pytest.mark.parametrize("engine", [compiled, reference])
def test_vectors_that_add_up_to_nothing_are_off_whatever_is_tolerated(engine):
    p = np.zeros((3, 4, 1))
    p[1], p[2, 0] = -1, 5e-324
    rounding = rounding_of(p.dtype, 4, Precision(None, math.inf))
    measured = engine.measure(p, np.arange(3), (MEASURES["gini"],), (1.0,), rounding)
    assert (measured.state == OFF).all()
    assert np.isnan(measured.values).all()
    state = np.zeros(3, np.uint8)
    votes, sums = np.zeros((4, 3), np.int32), np.zeros((4, 3))
    engine.add_member(p, np.arange(3), math.inf, math.inf, sums, np.zeros(3), votes, state)
    assert (state == OFF).all()
