"""Numbers by the rules of other packages: against these packages, where they are installed, and against the pixels."""

from __future__ import annotations

import re
import warnings
from functools import partial

import jsonschema
import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.metrics.conventions import PACKAGES
from dask_uncert.reports.page.templates import environment
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.reports.tables.scene import scene_tables
from tests.support.forest import held_out

EXTRA = "{} is not installed; it is in the extra `benchmarks`"


def drawn(classes=4, present=4, pixels=300, steps=None):
    """Probabilities and classes; the reference has the first of them. steps: probabilities are multiples of one over it."""
    rng = np.random.default_rng(classes + present)
    p = rng.dirichlet(np.full(classes, 0.7), size=pixels)
    if steps is not None:
        p = rng.multinomial(steps, p) / steps
    y = np.where(rng.random(pixels) < 0.5, p[:, :present].argmax(axis=1), rng.integers(0, present, pixels))
    return p, y


def never_predicted():
    p, y = drawn(4, 3)
    p[:, 3] = 0
    return p / p.sum(axis=1, keepdims=True), y


CASES = {
    "all classes": drawn(),
    "a class without reference": drawn(4, 3),
    "a class that is nowhere": never_predicted(),
    "values on edges": drawn(3, 3, steps=5),
    "two classes": drawn(2, 2),
    "one class of two": drawn(2, 1),
    "many classes, one in the reference": drawn(5, 1),
    "random forest": held_out(),
}


def torchmetrics(row, p, y):
    functional = pytest.importorskip("torchmetrics.functional.classification", reason=EXTRA.format("torchmetrics"))
    torch = pytest.importorskip("torch")
    name, _, rest = row.function.rstrip(")").partition("(")
    given = dict(re.findall(r'(\w+)="?(\w+)', rest))
    options = {key: int(value) if value.isdigit() else value for key, value in given.items()}
    needs = "calibration" in name or "auroc" in name
    prediction = torch.tensor(p if needs else p.argmax(axis=1))
    return float(getattr(functional, name)(prediction, torch.tensor(y), num_classes=p.shape[1], **options))


def scikit_learn(row, p, y):
    function = getattr(sklearn_metrics, row.function.partition("(")[0])
    classes = p.shape[1]
    if "macro" in row.function and "average_precision" not in row.function:
        return function(y, p.argmax(axis=1), average="macro")
    if "roc_auc" in row.function:
        if classes == 2:
            return function(np.eye(2)[y], p)
        p = p.astype(np.float64)  # rows of float32 do not add up to 1 well enough
        return function(y, p / p.sum(axis=1, keepdims=True), multi_class="ovr", labels=range(classes))
    if "average_precision" in row.function:
        return function(np.eye(classes)[y], p, average="macro")
    if "log_loss" in row.function:
        return function(y, p.astype(np.float64), labels=range(classes))
    return function(y, p[:, 1]) if "brier" in row.function else function(y, p.argmax(axis=1))


def monai(row, p, y):
    metrics = pytest.importorskip("monai.metrics", reason=EXTRA.format("monai"))
    torch = pytest.importorskip("torch")
    classes = p.shape[1]
    truth = torch.tensor(np.eye(classes)[y])
    if row.function.startswith("compute_"):
        return float(getattr(metrics, row.function.partition("(")[0])(torch.tensor(p), truth))
    image = partial(torch.reshape, shape=(1, classes, len(y), 1))
    decided = torch.tensor(np.eye(classes)[p.argmax(axis=1)])
    name, _, rest = row.function.rstrip(")").partition("(")
    key, _, value = rest.partition("=")
    metric = getattr(metrics, name)(**{key: {"False": False, '"none"': "none"}[value]})
    metric(image(decided.T), image(truth.T))
    found = metric.aggregate()
    return float(found[0, int(row.number.split("/")[1])] if value == '"none"' else found)


def metrics_reloaded(row, p, y):
    """As its classes do it, which are in no package index: written down from their text."""
    classes = p.shape[1]
    decided = p.argmax(axis=1)
    if row.function == "balanced_accuracy":
        matrix = sklearn_metrics.confusion_matrix(y, decided, labels=range(classes))
        with np.errstate(invalid="ignore"):
            return float(np.sum(np.diag(matrix) / matrix.sum(axis=1)) / classes)
    if row.number.startswith("classes/"):
        found = decided == int(row.number.split("/")[1])
        return 1.0 if row.function.startswith("dsc") and not found.any() else 0.0
    if row.function.startswith("class_wise"):
        ends, errors = np.linspace(0, 1, 16), []
        for k in range(classes):
            inside = (p[:, k] > ends[:-1, None]) & (p[:, k] <= ends[1:, None])
            errors.append(sum(abs((y[i] == k).sum() - p[i, k].sum(dtype=np.float64)) for i in inside) / len(y))
        return float(np.mean(errors))
    with np.errstate(divide="ignore"):
        return float(-np.log(p[range(len(y)), y], dtype=np.float64).sum())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("package", [torchmetrics, scikit_learn, monai, metrics_reloaded], ids=lambda f: f.__name__)
def test_numbers_are_those_of_the_package(package, case):
    p, y = CASES[case]
    rows = du.conventions(du.evaluate(p, y), package.__name__.replace("_", "-"))
    assert len(rows) > 2
    if case == "random forest" and package is monai:
        rows = [row for row in rows if "compute_" not in row.function]  # their loops over pixels take a minute
    for row in rows:
        if row.low == 0 and row.high == 1 and np.isnan(row.value):
            continue  # not to be had from counts, which its reason says
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = package(row, p, y)
        tolerance = 1e-6 * max(1.0, abs(theirs)) if np.isfinite(theirs) else 0.0
        if row.low == row.high or np.isnan(theirs):
            np.testing.assert_allclose(row.value, theirs, rtol=0, atol=tolerance, err_msg=str(row))
        else:
            assert row.low - tolerance <= theirs <= row.high + tolerance, (row, theirs)


def test_bounds_close_where_no_pixel_may_lie_on_an_edge():
    for case in ("all classes", "two classes"):
        rows = {row.number: row for row in du.conventions(du.evaluate(*CASES[case]), "torchmetrics")}
        assert rows["calibration/ece"].high - rows["calibration/ece"].low < 0.05
    p = np.array([[0.7, 0.3], [0.45, 0.55]])
    for row in du.conventions(du.evaluate(p, [0, 1]), "torchmetrics"):
        if row.number.startswith("calibration/"):
            assert row.low == row.value == row.high == row.ours
    on_edge = {row.number: row for row in du.conventions(du.evaluate([[0.8, 0.2]] * 4, [0, 0, 0, 1]), "torchmetrics")}
    assert on_edge["calibration/mce"].low < on_edge["calibration/mce"].high


def test_conventions_of_a_job_are_in_results_table_and_page():
    p, y = CASES["a class without reference"]
    evaluation = du.evaluate(p, y, conventions=[*PACKAGES])
    results = scene_results(evaluation)
    jsonschema.validate(results, results_schema())
    assert {row["package"] for row in results["conventions"]} == {*PACKAGES}
    assert len(dict(scene_tables(evaluation, results))["conventions"]) == 1 + len(results["conventions"])
    page = environment("pixel").get_template("conventions.html.jinja").render(results=results)
    assert page.count("<tr>") == len(PACKAGES) + len(results["conventions"])
    assert all(row["reason"] in page for row in results["conventions"])
    labels = du.evaluate(prediction=p.argmax(axis=1), reference=y, classes=list("abcd"), conventions="monai")
    assert any(row["number"] == "classes/d/f1" for row in scene_results(labels)["conventions"])
    with pytest.raises(InputError, match="no package 'keras'"):
        du.conventions(evaluation, "keras")
