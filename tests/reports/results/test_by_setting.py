"""Averages of the soft confusion and selective prediction against plain loops."""

import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.soft_confusion import soft_weights
from dask_uncert.metrics.scalars import COVERAGES
from dask_uncert.reports.results.scene import scene_results


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.5] * 4, 300)
    y = rng.integers(0, 3, 300)  # the last class has no support
    return p, y, evaluate(p, y, soft_confusion=[{"thresholds": [0.4], "sigmas": [0, 0.1]}])


def test_macro_and_micro(drawn):
    p, y, evaluation = drawn
    rows = scene_results(evaluation)["soft_confusion_overall"]
    assert [row["sigma"] for row in rows] == [0, 0.1]
    for row in rows:
        assert row["classes"] == ["0", "1", "2", "3"]
        cells = [soft_weights(p[:, k], (y == k).astype(float), 0.4, row["sigma"]) for k in range(4)]
        tp, fp, fn = (np.array([c[name].sum() for c in cells]) for name in ("TP", "FP", "FN"))
        each = 2 * tp / (2 * tp + fp + fn)
        assert row["macro"]["f1"]["n"] == 3
        assert row["macro"]["f1"]["value"] == pytest.approx(each[:3].mean(), abs=1e-11)
        pooled = 2 * tp.sum() / (2 * tp.sum() + fp.sum() + fn.sum())
        assert row["micro"]["f1"] == pytest.approx(pooled, abs=1e-11)


def test_risk_at_coverage_is_that_of_the_most_certain(drawn):
    p, y, evaluation = drawn
    right = p.argmax(axis=1) == y
    gini = 1 - np.square(p).sum(axis=1)
    order = np.argsort(gini, kind="stable")
    points = scene_results(evaluation)["selective"]["gini"]["risk_at_coverage"]
    risks = {point["coverage"]: point["risk"] for point in points}
    assert list(risks) == list(COVERAGES)
    assert risks[1.0] == pytest.approx(1 - right.mean(), abs=1e-12)
    for coverage in COVERAGES[:-1]:
        kept = order[: int(np.ceil(coverage * 300))]
        assert risks[coverage] == pytest.approx(1 - right[kept].mean(), abs=0.01)
