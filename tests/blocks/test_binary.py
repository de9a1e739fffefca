"""A binary prediction without a class axis leaves the counts of one with both classes, by either engine."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks import classification
from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.encoding import three_axes
from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.inputs.scene import Encoding
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Class
from dask_uncert.summaries.joint_histogram import HALVES, JointSettings
from dask_uncert.summaries.soft_confusion import SoftSettings

CLASSES = (Class(3, "no"), Class(7, "yes"))
LEVELS = ((0.0, 0.0), (1.0, 1.0))


def joint(class_index, uncertainty, dtype):
    bins, upper = (8, math.inf) if uncertainty else (1, 1.0)
    rows = ("interval", 16) if dtype == "float32" else ("float16", HALVES)
    return JointSettings(class_index, uncertainty, (0.3, 0.7), dtype, *rows, None, LEVELS, upper, bins)


SOFT = (
    SoftSettings(1, (0.3, 0.5), (0.0, 0.1), (0.0, 1.0), "uncertainty"),
    SoftSettings(0, (0.5,), (0.0,), (0.0,), None),
    SoftSettings(0, (0.7,), (1e-9, 0.3), (0.5, math.inf), "uncertainty", damping_form="gaussian", reference_threshold=0.4),
    SoftSettings(1, (0.6,), (2.0,), (0.5,), "uncertainty", damping_form="reciprocal", reference_certainty="none"),
    SoftSettings(1, (0.5,), (0.1,), (1.0,), None, distribution="laplace"),
)  # fmt: skip
REQUESTS = {
    dtype: Request(
        CLASSES,
        ignore=(0,),
        joint=(joint(1, "uncertainty", dtype), joint(0, "uncertainty", dtype), joint(1, None, dtype)),
        soft=SOFT,
    )
    for dtype in ("float32", "float16")
}


def block(seed, shape, dtype="float32"):
    """Values on edges, thresholds and the middle, next to them and beyond by rounding, missing ones and masks."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.4, shape).astype(np.float32)
    special = np.float32(
        [
            0.0,
            -0.0,
            1e-30,
            2.0**-25,
            2.0**-24,
            2.0**-14,
            5e-5,
            0.3,
            0.5,
            0.5 - 2.0**-25,
            0.7,
            0.6,
            1.0,
            -1e-8,
            1 + 2.0**-23,
            np.nan,
        ]
    )
    p = np.where(rng.random(shape) < 0.3, rng.choice(special, shape), p)
    arrays = {"probabilities": p.astype(dtype), "reference": rng.choice([0, 3, 7], shape, p=[0.1, 0.5, 0.4])}
    u = rng.exponential(1.0, shape).astype(np.float32)
    return {**arrays, "uncertainty": np.where(rng.random(shape) < 0.1, np.nan, u), "mask": rng.random(shape) < 0.9}


def with_both(arrays):
    p = arrays["probabilities"]
    pairs, _ = three_axes(p, None, None)
    return {**arrays, "probabilities": pairs.reshape(*p.shape, 2).astype(p.dtype)}


def evaluated(arrays, class_axis, kernels):
    return evaluate_block(REQUESTS[arrays["probabilities"].dtype.name], arrays, Encoding(class_axis), kernels)[1]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 60), dtype=st.sampled_from(sorted(REQUESTS)))
def test_both_forms_and_both_engines_count_the_same(seed, rows, dtype):
    arrays = block(seed, (rows, 17), dtype)
    found = evaluated(arrays, None, compiled)
    both = evaluated(with_both(arrays), 2, compiled)
    for (name, _, mine), (_, _, theirs) in zip(found.arrays(), both.arrays(), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    assert found.ledger.counted + found.ledger.excluded.sum() == rows * 17
    by_definition = evaluated(arrays, None, reference)
    for name in ("ledger", "decisions", "joint"):
        assert getattr(found, name) == getattr(by_definition, name)
    for mine, theirs in zip(found.soft_confusion, by_definition.soft_confusion, strict=True):
        np.testing.assert_allclose(decode(mine.weights), decode(theirs.weights), rtol=0, atol=rows * 17 * 2.0**-43)
    np.testing.assert_array_equal(found.calibration.winning, by_definition.calibration.winning)
    np.testing.assert_array_equal(found.calibration.classwise, by_definition.calibration.classwise)


@pytest.mark.parametrize("dtype", REQUESTS)
def test_no_vector_is_made_for_a_pixel_without_repair(monkeypatch, dtype):
    shapes = []
    real = classification.three_axes
    monkeypatch.setattr(classification, "three_axes", lambda p, *rest: shapes.append(p.shape) or real(p, *rest))
    arrays = block(0, (40, 40), dtype)
    plain = {**arrays, "probabilities": np.clip(np.nan_to_num(arrays["probabilities"]), 0, 1)}
    assert evaluated(plain, None, compiled).ledger.counted > 1000
    assert not shapes


@pytest.mark.slow
def test_sums_of_a_full_bin_are_taken_apart_in_time():
    number = 1 << 19
    p = np.full(number, 1.0 - 2.0**-24, np.float32)
    arrays = {"probabilities": p, "reference": np.full(number, 7), "uncertainty": np.zeros(number, np.float32)}
    assert evaluated(arrays, None, compiled) == evaluated(with_both(arrays), 1, compiled)


def test_a_value_beyond_rounding_is_refused_as_before():
    arrays = {"probabilities": np.float32([0.5, 1.5]), "reference": np.array([3, 7])}
    arrays["uncertainty"] = np.zeros(2, np.float32)
    with pytest.raises(UnusableBlockError, match="probabilities"):
        evaluated(arrays, None, compiled)
