"""Known ways to get it wrong, each with its right value; more, through the command, in tests/inputs/test_known_faults.py."""

import dask.array as da
import numpy as np
import pytest

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.metrics import calibration as calibration_metrics
from dask_uncert.metrics import classification
from dask_uncert.metrics.scalars import scalars
from dask_uncert.spec.inputs import Input


def certain(index, classes):
    return np.eye(classes, dtype="float32")[np.asarray(index)]


def numbers(found):
    """Pixels in each calibration bin."""
    return found.calibration.binned(found.calibration.fine).number.tolist()


@pytest.mark.parametrize("classes", [17, 20, 300])
def test_index_arithmetic_in_the_storage_dtype(classes):
    if classes == 17:
        found = evaluate(certain([16], 17), np.array([16], "uint8"))
        assert found.decisions.confusion[16, 16] == 1
        return
    reference, predicted = np.meshgrid(np.arange(classes), np.arange(classes), indexing="ij")
    dtype = "uint8" if classes <= 256 else "uint16"
    found = evaluate(certain(predicted, classes), reference.astype(dtype), measures=[])
    assert (found.decisions.confusion == 1).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
def test_codes_that_are_not_indices(dtype):
    p = certain([0, 1, 2, 1], 3)
    classes = {1: "one", 2: "two", 5: "five"}
    found = evaluate(p, np.array([1, 2, 5, 5], dtype), classes=classes)
    matrix = found.decisions.confusion
    assert matrix.diagonal().tolist() == [1, 1, 1]
    assert matrix[2, 1] == 1
    assert classification.accuracy(found) == 0.75
    with pytest.raises(InputError, match=r"7 \(1 pixel\)|7.0 \(1 pixel\)"):
        evaluate(p, np.array([1, 2, 7, 5], dtype), classes=classes)


def test_labels_that_are_no_whole_numbers():
    with pytest.raises(InputError, match=r"not whole numbers: 5\.4 \(2 pixels\)"):
        evaluate(certain([0, 0], 2), np.array([5.4, 5.4]), classes={5: "a", 6: "b"})
    wide = {5: "a", 5_000_000_000: "b"}
    found = evaluate(certain([0, 1], 2), np.array([5, 5_000_000_000]), classes=wide)
    assert classification.accuracy(found) == 1.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_edge_lies_in_the_bin_below(dtype):
    for bins in (3, 7, 10, 15):
        edges = np.arange(bins // 2 + 1, bins + 1) / bins
        p = edges.astype(dtype)
        found = evaluate(
            Input(p, tolerance=1e-2),
            np.ones(p.size, int),
            axis=None,
            classes=["no", "yes"],
            calibration={"bins": bins},
        )
        number = numbers(found)
        assert sum(number) == p.size
        assert number[-p.size :] == [1] * p.size


def test_empty_bins_stay():
    words = {"axis": None, "classes": ["no", "yes"], "calibration": {"bins": 3}}
    first = evaluate(np.array([0.9, 0.8, 0.2]), np.array([1, 1, 0]), **words)
    second = evaluate(np.array([0.5]), np.array([0]), **words)
    for patients, winning, of_yes, error in (
        (first, [0, 0, 3], [1, 0, 2], 1 / 6),
        (second, [0, 1, 0], [0, 1, 0], 0.5),
        (first + second, [0, 1, 3], [1, 1, 2], 0.25),
    ):
        bins = patients.calibration
        assert numbers(patients) == winning
        assert bins.binned(bins.fine_by_class).number[1].tolist() == of_yes
        assert calibration_metrics.expected_calibration_error(patients) == pytest.approx(error)
        assert calibration_metrics.classwise_calibration_error(patients) == pytest.approx(error)


def test_a_probability_of_0_is_in_the_first_bin():
    words = {"axis": None, "classes": ["no", "yes"], "calibration": {"bins": 10}}
    found = evaluate(np.array([0.0, 0.04]), np.array([1, 0]), **words)
    number = found.calibration.binned(found.calibration.fine_by_class).number[1]
    assert number.tolist() == [2] + [0] * 9
    assert scalars(found)["calibration/classes/yes/ece"] == pytest.approx(0.48)


@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_nothing_is_taken_for_logits(chunk):
    p = da.from_array(np.array([-1.2, 2.0, 0.3, 0.4]), chunks=chunk)
    with pytest.raises(InputError, match=r"2 counted pixels .* from -1\.2 to 2\.2"):
        evaluate(p, np.array([0, 1, 1, 1]), axis=None, classes=["no", "yes"])


def test_rows_that_do_not_sum_to_one():
    thirds = np.full((1, 3), 1 / 3, "float16")
    assert int(evaluate(thirds, np.array([0])).ledger.counted) == 1
    repaired = evaluate(np.array([[1.0000001, -1e-7]], "float32"), np.array([0]))
    assert repaired.ledger.repaired.tolist() == [1, 0]
    assert classification.accuracy(repaired) == 1.0
    with pytest.raises(InputError, match=r"sums \(clipped\) from 0\.5 to 0\.5"):
        evaluate(np.array([[0.2, 0.3]]), np.array([0]))
    bytes_ = np.full((1, 3), 85, "uint8")
    with pytest.raises(InputError, match="declared `scale`"):
        evaluate(bytes_, np.array([0]))
    assert int(evaluate(Input(bytes_, scale=1 / 255), np.array([0])).ledger.counted) == 1


@pytest.mark.parametrize("threshold", [0.7, float(np.float64(0.7))])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_p_on_the_threshold_in_any_dtype(dtype, threshold):
    words = {"axis": None, "classes": ["no", "yes"]}
    found = evaluate(
        np.array([0.7, 0.7], dtype), np.array([1, 0]), **words,
        soft_confusion=[{"class": "yes", "thresholds": [threshold]}],
    )  # fmt: skip
    cells = classification.soft_cells(found.soft_confusion[0])
    assert {name: float(value[0, 0, 0]) for name, value in cells.items()} == {
        "TP": 1,
        "TN": 1,
        "FP": 0,
        "FN": 0,
    }


def test_no_spread():
    found = evaluate(
        np.array([0.2, 0.5, 0.8]), np.array([0, 1, 1]), axis=None, classes=["no", "yes"],
        uncertainty=np.array([0.0, 0.5, 0.0]),
        soft_confusion=[{"class": "yes", "dampings": [0, float("inf")], "uncertainty": "uncertainty"}],
    )  # fmt: skip
    cells = classification.soft_cells(found.soft_confusion[0])
    assert cells["TP"][0, 0].tolist() == [2, 1]
    assert cells["TN"][0, 0].tolist() == [1, 1]


SOFT = {
    (0.0, 0.0): (3, 3, 1, 1),
    (0.1, 0.0): (1.1924665617, 1.9999994267, 0.6826894921, 0.3655017375),
    (0.1, 2.0): (0.8412920503, 1.4536487395, 0.1378326313, 0.1100870078),
    (0.3, 1.0): (0.2154371769, 1.5902895801, 0.1164287562, 0.0359603171),
}


@pytest.mark.parametrize("setting", SOFT)
def test_soft_confusion_of_the_method(setting):
    sigma, damping = setting
    found = evaluate(
        np.array([0.95, 0.85, 0.80, 0.75, 0.10, 0.90, 0.30, 0.80]),
        np.array([1, 1, 1, 1, 0, 0, 0, 0]),
        uncertainty=np.array([0.1, 0.4, 0.2, 0.6, 0.05, 0.8, 0.3, 0]),
        axis=None,
        classes=["no", "yes"],
        soft_confusion=[
            {
                "class": "yes",
                "thresholds": [0.8],
                "sigmas": [sigma],
                "dampings": [damping],
                "uncertainty": "uncertainty",
            }
        ],
    )
    cells = classification.soft_cells(found.soft_confusion[0])
    for name, wanted in zip(("TP", "TN", "FP", "FN"), SOFT[setting], strict=True):
        assert float(cells[name][0, 0, 0]) == pytest.approx(wanted, abs=1e-10)


def test_nan_in_an_input_leaves_out_that_pixel_and_says_why():
    p = np.array([[0.9, 0.1], [np.nan, 0.5], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3]])
    found = evaluate(
        p,
        np.array([0.0, 0.0, np.nan, 9.0, 0.0]),
        uncertainty=np.array([0.1, 0.1, 0.1, 0.1, np.nan]),
        mask=np.array([1, 1, 1, 1, 1]),
        classes=["a", "b"],
        ignore=[9],
        measures=["gini", "uncertainty"],
    )
    assert int(found.ledger.counted) == 1
    assert found.ledger.reasons() == {
        "masked": 0, "ignored": 1, "reference_nan": 1, "probabilities_nan": 1, "uncertainty_nan": 1,
    }  # fmt: skip


def test_garbage_where_nothing_counts_is_no_matter():
    p = np.array([[0.9, 0.1], [-9999.0, -9999.0], [0.0, 0.0]])
    found = evaluate(p, np.array([0, 1, 1]), mask=np.array([True, False, False]))
    assert int(found.ledger.counted) == 1


@pytest.mark.parametrize("measures", [["gini"], ["gini", "uncertainty"]])
def test_a_predicted_uncertainty_out_of_range_is_refused(measures):
    p, c = np.tile([0.9, 0.1], (4, 1)), np.zeros(4, int)
    words = {"measures": measures, "soft_confusion": [{"uncertainty": "uncertainty", "dampings": [1]}]}
    with pytest.raises(InputError, match=r"uncertainty: .* 1 counted pixel outside \[0, .*: from -0\.5"):
        evaluate(p, c, uncertainty=np.array([0.1, 0.2, -0.5, 0.3]), **words)
    above = np.array([0.1, 7.0, 0.2, np.inf])
    if "uncertainty" in measures:
        with pytest.raises(InputError, match=r"1 counted pixel outside \[0, 1.04858e\+06\]: from inf to inf"):
            evaluate(p, c, uncertainty=above, **words)
    else:
        found = evaluate(p, c, uncertainty=above, **words)
        assert int(found.ledger.counted) == 4
