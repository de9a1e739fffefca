"""Every pixel of the grid is counted or left out for a reason, whatever is evaluated, or the pass fails."""

import numpy as np
import pytest

from dask_uncert.errors import LostPixelsError
from dask_uncert.execution.evaluate import prepare
from dask_uncert.execution.evaluate_regression import prepare_regression
from dask_uncert.execution.tasks import EvaluateBlock
from dask_uncert.inputs.cube import Cube
from dask_uncert.spec.options import RegressionOptions, SceneOptions


@pytest.fixture
def lost_pixel(monkeypatch):
    """The first block counts one pixel too few."""
    evaluate_block = EvaluateBlock.__call__

    def losing(self, arrays, offset):
        evaluation = evaluate_block(self, arrays, offset)
        evaluation.ledger.counted[...] -= not any(offset)
        return evaluation

    monkeypatch.setattr(EvaluateBlock, "__call__", losing)


def plan_of(kind):
    rng, block = np.random.default_rng(0), (2, 3)
    reference = Cube("reference", rng.integers(0, 3, (4, 6)), ("y", "x"))
    if kind == "regression":
        inputs = {name: Cube(name, rng.random((4, 6)), ("y", "x")) for name in ("mean", "variance")}
        return prepare_regression(RegressionOptions(), {"reference": reference, **inputs}, block=block)
    p = Cube("probabilities", rng.dirichlet(np.ones(3), (4, 6)), ("y", "x", "class"))
    return prepare(SceneOptions(), {"probabilities": p, "reference": reference}, block=block)


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_lost_pixel_fails_the_pass(kind, here, lost_pixel):
    plan = plan_of(kind)
    with pytest.raises(LostPixelsError, match="has 24 pixels, but 23 are accounted for"):
        plan.compute_here() if here else plan.compute()


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_here_and_on_dask_are_the_same(kind):
    plan = plan_of(kind)
    assert plan.compute_here() == plan.compute() == plan.in_one_task().compute_here()


def test_a_regression_of_several_outputs_may_lack_chunks():
    """The input that says where chunks are missing has no outputs of its own."""
    dims, values = ("y", "x", "output"), np.ones((4, 6, 2))
    cubes = {name: Cube(name, values, dims) for name in ("mean", "reference", "variance")}
    absent = np.indices((4, 6))[0] < 3
    cubes["absent_mean"] = Cube("absent_mean", absent, ("y", "x"), kind="mean", gap="missing_chunk")
    evaluation = prepare_regression(RegressionOptions(), cubes, block=(2, 3)).compute_here()
    assert evaluation.ledger.reasons()["mean_missing_chunk"] == 18
