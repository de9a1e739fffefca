"""Public readings of rankings, thresholds and sets: the formulas' numbers with names, and clear refusals."""

import numpy as np
import pytest

import dask_uncert as du
from tests.support import forest

CLASS = "1"  # Corn-notill


def test_readings_of_the_random_forest():
    evaluation = forest.evaluation()
    p, y = forest.held_out()
    table = du.threshold_table(evaluation, CLASS)
    chosen = du.best_threshold(evaluation, CLASS)
    found, true = p[:, 1] > np.float32(chosen.threshold), y == 1
    assert (found & true).sum() == table.sel(threshold=chosen.threshold).TP
    np.testing.assert_allclose(chosen.value, 0.6910505837, atol=1e-10)
    curve = du.roc_curve(evaluation, CLASS)
    assert (curve.recall.diff("threshold") <= 0).all()
    area = du.roc_auc(evaluation, bound=True).sel({"class": CLASS})
    assert area.low <= -np.trapezoid(curve.recall, curve.false_positive_rate) <= area.high
    assert du.average_precision(evaluation).sel({"class": CLASS}).item() == pytest.approx(0.779021648179)
    reached = du.best_threshold(evaluation, CLASS, "recall", at_least=0.9)
    assert (p[true, 1] > np.float32(reached.threshold)).mean() == reached.value >= 0.9
    sets = du.prediction_sets(evaluation, [0.05, 0.2])
    np.testing.assert_allclose(sets.coverage, [0.9837009671, 0.8976420732], atol=1e-10)
    np.testing.assert_allclose(sets.mean_size, [3.2011300663, 1.5286319678], atol=1e-10)
    support = evaluation.decisions.confusion.sum(axis=1)
    np.testing.assert_allclose((sets.class_coverage * support[:, None]).sum("class") / support.sum(), sets.coverage)
    per_class = du.conformal_threshold(evaluation, 0.9, by_class=True)
    own = np.take_along_axis(p, y[:, None].astype(int), 1)[:, 0]
    covered = [(own[y == k] > np.float32(per_class[k])).mean() for k in range(16) if (y == k).sum() > 10]
    assert min(covered) >= 0.9
    assert du.corp(evaluation, CLASS).uncertainty == pytest.approx(true.mean() * (1 - true.mean()))


def test_what_does_not_exist_is_said():
    evaluation = forest.evaluation()
    for call, message in (
        (lambda: du.roc_curve(evaluation, "corn"), "no class .corn.*Classes: 0, 1"),
        (lambda: du.best_threshold(evaluation, CLASS, "f2"), "f2.* is not one of"),
        (lambda: du.best_threshold(evaluation, CLASS, "f1", at_least=0.5), "at_least"),
        (lambda: du.prediction_sets(evaluation, [0.1, 2]), r"must lie in \[0, 1\]"),
        (lambda: du.conformal_threshold(evaluation, 1), "between 0 and 1"),
        (lambda: du.corp(evaluation, "x"), "no class 'x'"),
    ):
        with pytest.raises(du.InputError, match=message):
            call()
