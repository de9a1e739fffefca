"""Near a vertex every measure keeps its digits, however little the other classes have: against 80 digits."""

import math

import mpmath
import numpy as np
import pytest

from dask_uncert.blocks.encoding import rounding_of
from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.formulas.measures import parse_measure

MEASURES = [
    "gini", "entropy", "fisher_rao", "renyi", "tsallis", "t_entropy", "variance", "max_probability", "margin",
    *({"renyi": {"alpha": alpha}} for alpha in (0.3, 0.9, 1.2, 3.0, 100.0, math.inf)),
    *({"tsallis": {"alpha": alpha}} for alpha in (0.3, 0.9, 1.2, 3.0)),
    *({"geometric": {"distance": distance, "n": n}} for distance in ("euclidean", "kullback-leibler", "fisher-rao") for n in (1, 5)),
]  # fmt: skip


def precisely(measure, p):
    """The measure of one vector by its definition, in mpmath."""
    p = [mpmath.mpf(x) for x in p]
    p, classes = [x / sum(p) for x in p], len(p)
    kind, alpha, n = measure.distance or measure.kind, measure.alpha, measure.n or 1
    if kind == "variance":
        return 4 * max(p) * (1 - max(p))
    if kind in ("max_probability", "margin"):
        return 1 - max(p) + (sorted(p)[-2] if kind == "margin" else 0)
    if kind == "t_entropy":
        entropy = sum(x * mpmath.atan(1 / x) for x in p if x) - mpmath.pi / 4
        return entropy / (mpmath.atan(classes) - mpmath.pi / 4)
    if kind == "tsallis":
        return (1 - sum(x ** mpmath.mpf(alpha) for x in p if x)) / (1 - mpmath.mpf(classes) ** (1 - mpmath.mpf(alpha)))
    if kind == "renyi":
        entropy = -mpmath.log(max(p))
        if not math.isinf(alpha):
            entropy = mpmath.log(sum(x ** mpmath.mpf(alpha) for x in p if x)) / (1 - mpmath.mpf(alpha))
        ratio = 1 - entropy / mpmath.log(classes)
    elif kind == "kullback-leibler":
        ratio = 1 + sum(x * mpmath.log(x) for x in p if x) / mpmath.log(classes)
    elif kind == "fisher-rao":
        root = mpmath.sqrt(mpmath.mpf(1) / classes)
        ratio = mpmath.acos(root * sum(map(mpmath.sqrt, p))) / mpmath.acos(root)
    else:
        ratio = mpmath.sqrt(sum((x - mpmath.mpf(1) / classes) ** 2 for x in p) * classes / (classes - 1))
    return 1 - ratio**n


@pytest.mark.parametrize("engine", [compiled, reference])
def test_small_values_keep_their_digits(engine):
    rng, measures = np.random.default_rng(0), tuple(parse_measure(entry) for entry in MEASURES)
    for classes in (2, 5):
        for dtype in ("float32", "float64"):
            rest = 10.0 ** -rng.uniform(0.5, 28, 25)
            p = rng.dirichlet(np.ones(classes - 1), 25) * rest[:, np.newaxis]
            p = np.concatenate([p, 1 - p.sum(axis=1, keepdims=True)], axis=1).astype(dtype)
            found = engine.measure(
                p[:, :, np.newaxis], np.arange(25), measures, (1.0,) * len(measures), rounding_of(p.dtype, classes)
            ).values
            with mpmath.workdps(80):
                for measure, values in zip(measures, found, strict=True):
                    wanted = [float(precisely(measure, row)) for row in p.astype(np.float64).tolist()]
                    rtol = 2e-6 if engine is compiled and dtype == "float32" else 2e-13
                    np.testing.assert_allclose(values, wanted, rtol=rtol, err_msg=f"{measure.name} {dtype}")
