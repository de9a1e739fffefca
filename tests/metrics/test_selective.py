"""Selective prediction of networks that are nearly certain, against the order of the values themselves."""

import math

import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.metrics import selective
from dask_uncert.reports.results.scene import scene_results

MEASURES = [
    "gini", "entropy", "fisher_rao", "renyi", "tsallis", "t_entropy", "variance", {"renyi": {"alpha": math.inf}},
    {"renyi": {"alpha": 1.2}}, {"tsallis": {"alpha": 3.0}}, {"geometric": {"distance": "euclidean", "n": 1}},
    "uncertainty", "expected_entropy",
]  # fmt: skip
CASES = {  # decades of 1 - confidence, and the share of errors by them
    "sure": ((0.31, 8), lambda x: 0.8 / (1 + np.exp(1.5 * (x - 2.2)))),
    "surer": ((3.5, 7), lambda x: 0.1 * 10 ** (-0.8 * (x - 3.5))),
}


def exact(x, wrong):
    """AURC and AUROC of pixels that are all different, from the order of x, the most certain last."""
    certain_first = wrong[np.argsort(-x)]
    n, errors = len(x), wrong.sum()
    ranks = np.flatnonzero(certain_first)
    auroc = (ranks.sum() - errors * (errors - 1) / 2) / (errors * (n - errors))
    return (np.cumsum(certain_first) / np.arange(1, n + 1)).mean(), auroc


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stored", ["pair float32", "binary float64"])
@pytest.mark.parametrize("engine", ["compiled", pytest.param("reference", marks=pytest.mark.slow)])
def test_near_certain_networks(case, stored, engine):
    rng, (ends, share) = np.random.default_rng(0), CASES[case]
    x = rng.uniform(*ends, 20_000)
    wrong, second = rng.random(x.size) < share(x), rng.random(x.size) < 0.5
    rest = 10.0**-x
    pair = np.stack([np.where(second, rest, 1 - rest), np.where(second, 1 - rest, rest)], axis=1)
    if stored == "binary float64":
        pair[:, 0] = rest = 1 - pair[:, 1]
        rest = np.minimum(rest, pair[:, 1])
    p = pair.astype("float32") if "float32" in stored else pair[:, 1]
    found = evaluate(
        p, second ^ wrong, samples=[p], uncertainty=rest, axis=None if p.ndim == 1 else 1, classes=["no", "yes"],
        measures=MEASURES, engine=engine,
    )  # fmt: skip
    aurc, auroc = exact(-np.log(rest), wrong)
    reported = scene_results(found)["selective"]
    for name in found.measures:
        for key, function, true in (("aurc", selective.aurc, aurc), ("error_auroc", selective.error_auroc, auroc)):
            value, lowest, highest = function(found, name, bound=True)
            assert lowest - 1e-12 <= true <= highest + 1e-12, (name, key)
            assert max(highest - value, value - lowest) <= 1e-3, (name, key)
            assert abs(value - true) < 2e-4, (name, key)
            assert [reported[name][key], *reported[name][f"{key}_bound"]] == [value, lowest, highest]
