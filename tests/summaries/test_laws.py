"""The laws of `+` for every kind of Summary, and that unequal frames refuse to add."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.formulas.measures import MEASURES, Measure
from dask_uncert.io.summary_store import read_counts, write_counts
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.confidence_joint import ConfidenceJoint
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Class, Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram, JointSettings
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.registry import evaluation_from_plain
from dask_uncert.summaries.regression import RegressionEvaluation
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings
from dask_uncert.summaries.summary import UnequalFramesError
from tests.support.summaries import filled

H = ((0.0, 1.0, 2.0), (1.0, 0.0, 0.1), (2.0, 0.1, 0.0))
JOINT = JointSettings(
    1, "uncertainty", (0.3,), "float32", "interval", 16, None, ((0.0, 0.0), (1.0, 1.0)), math.inf, 8
)  # fmt: skip
ZEROS = {
    "ledger": Ledger.zero(),
    "decisions": Decisions.zero(3),
    "distribution": Distribution.zero(MEASURES["gini"], (0.3, 1 / 3), 3),
    "predicted uncertainty": Distribution.zero(MEASURES["uncertainty"], (2.5,), 3),
    "confidence_joint": ConfidenceJoint.zero(Distribution.zero(MEASURES["uncertainty"], (), 3)),
    "calibration": Calibration.zero(5, 3),
    "soft_confusion": SoftConfusion.zero(SoftSettings(1, (0.5,), (0.0, 0.1), (0.0, math.inf), "gini")),
    "joint": JointHistogram.zero(JOINT),
    "regression": RegressionEvaluation.zero(3),
}
ZEROS["evaluation"] = Evaluation(
    classes=(Class(1, "a"), Class(2, "b"), Class(5, "ü")),
    class_metric="energy",
    ledger=ZEROS["ledger"],
    decisions=ZEROS["decisions"],
    distributions=(
        ZEROS["distribution"],
        Distribution.zero(dataclasses.replace(MEASURES["homophily"], distances=H), (), 3),
    ),
    calibration=ZEROS["calibration"],
    soft_confusion=(ZEROS["soft_confusion"],),
    joint=(ZEROS["joint"],),
    confidence_joint=(ConfidenceJoint.zero(ZEROS["distribution"]),),
)
KINDS = pytest.mark.parametrize("kind", ZEROS)


@KINDS
@settings(max_examples=5)  # each draws every count
@given(seeds=st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3))
def test_laws_of_addition(kind, seeds):
    zero = ZEROS[kind]
    a, b, c = (filled(zero, seed) for seed in seeds)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + zero == a
    assert a + 0 == a
    assert 0 + a == a
    assert sum([a, b, c]) == a + b + c == c.plus_all([a, b])
    assert a.plus_all([]) == a
    assert (a + b) - b == a
    assert a - a == zero


@KINDS
def test_counts_pass_two_to_the_24_and_the_31(kind):
    """No accumulator has the storage's dtype."""
    zero = ZEROS[kind]
    for name, _, value in zero.arrays():
        assert value.dtype == np.int64, name
    a = filled(zero, 1)
    for (_, _, once), (_, _, thrice) in zip(a.arrays(), (a + a + a).arrays(), strict=True):
        assert np.array_equal(3 * once, thrice)
        assert (thrice > 2**31).any() or thrice.size < 3


def test_overflow_is_an_error_not_a_wrong_number():
    big = dataclasses.replace(Ledger.zero(), counted=np.array(2**62))
    with pytest.raises(OverflowError, match="counted"):
        big + big
    for others in (
        [big, big],
        [big, big, big],
        [big - Ledger.zero(), Ledger.zero(), big],
    ):  # also where bits wrap around
        with pytest.raises(OverflowError, match="counted"):
            big.plus_all(others)
    one = dataclasses.replace(Ledger.zero(), counted=np.array(1))
    assert (big - one).plus_all([big]).counted == 2**63 - 1


@KINDS
def test_adding_leaves_the_parts_alone(kind):
    a, b = filled(ZEROS[kind], 1), filled(ZEROS[kind], 2)
    _ = a + b, a.plus_all([b, b])
    assert a == filled(ZEROS[kind], 1)
    assert b == filled(ZEROS[kind], 2)


@KINDS
def test_other_kinds_do_not_add(kind):
    for other in ("ledger", "decisions"):
        if other != kind:
            with pytest.raises(TypeError):
                ZEROS[kind] + ZEROS[other]
    with pytest.raises(TypeError):
        ZEROS[kind] + 1


def changed(**changes):
    return dataclasses.replace(ZEROS["evaluation"], **changes)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (changed(classes=(Class(1, "a"), Class(2, "b"), Class(6, "ü"))), "classes"),
        (changed(class_metric="table"), "class_metric"),
        (changed(soft_confusion=()), "soft_confusion"),
        (changed(distributions=ZEROS["evaluation"].distributions[:1]), "distributions"),
        (changed(calibration=Calibration.zero(7, 3)), "shapes|edges|bins"),
        (
            changed(
                distributions=(
                    ZEROS["evaluation"].distributions[0],
                    Distribution.zero(Measure("homophily", "homophily", distances=H[::-1]), (), 3),
                )
            ),
            "measure",
        ),
    ],
)
def test_unequal_frames_refuse(other, what):
    with pytest.raises(UnequalFramesError, match=what):
        ZEROS["evaluation"] + other


@pytest.mark.parametrize(("name", "kind"), [("evaluation", "classification"), ("regression", "regression")])
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_written_and_read_back(tmp_path_factory, name, kind, seed):
    evaluation = filled(ZEROS[name], seed)
    store = str(tmp_path_factory.mktemp("summary") / "summary.zarr")
    write_counts(store, evaluation.frame(), evaluation.arrays())
    frame, arrays = read_counts(store)
    assert frame["kind"] == kind
    assert evaluation_from_plain(frame, arrays) == evaluation


@KINDS
def test_what_a_frame_lacks_or_does_not_know_is_an_error(kind):
    summary = ZEROS[kind]
    frame, arrays = summary.frame(), {path: value for path, _, value in summary.arrays()}
    assert summary.from_plain(frame, arrays) == summary
    for wrong in ({**frame, "kind": "other"}, {**frame, "more": 1}):
        with pytest.raises(TypeError, match=frame["kind"]):
            summary.from_plain(wrong, arrays)
    for key in arrays:
        with pytest.raises(KeyError):
            summary.from_plain(frame, {path: value for path, value in arrays.items() if path != key})


def test_counts_that_came_later_are_none_in_older_data():
    evaluation = filled(dataclasses.replace(ZEROS["evaluation"], confidence_joint=()), 2)
    frame = {key: value for key, value in evaluation.frame().items() if key != "confidence_joint"}
    arrays = {path: value for path, _, value in evaluation.arrays()}
    assert Evaluation.from_plain(frame, arrays) == evaluation
    with pytest.raises(KeyError, match="decisions"):
        Evaluation.from_plain({key: value for key, value in frame.items() if key != "decisions"}, arrays)


@pytest.mark.parametrize("kind", ["evaluation", "regression"])
def test_to_dataset_holds_everything(kind):
    evaluation = filled(ZEROS[kind], 4)
    dataset = evaluation.to_dataset()
    assert set(dataset) == {path.replace("/", ".") for path, _, _ in evaluation.arrays()}
    for path, _, value in evaluation.arrays():
        assert np.array_equal(dataset[path.replace("/", ".")].values, value)
    assert dataset.attrs["frame"] == evaluation.frame()
