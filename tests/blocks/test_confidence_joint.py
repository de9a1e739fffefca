"""Joint distributions of confidence and uncertainty: the counts of numpy, whatever the dtype, chunks, zones and tiles."""

import dask.array as da
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.formulas.labels import as_stored
from tests.support.arrays import probability_vectors

SHAPE, CLASSES = (23, 17), 3
MEASURES = ["gini", "entropy", "uncertainty"]


def drawn(dtype):
    rng = np.random.default_rng(3)
    p = probability_vectors(rng, SHAPE[0] * SHAPE[1], CLASSES).reshape(*SHAPE, CLASSES)
    p[:5] = np.round(p[:5] * 50) / 50  # on edges
    p /= p.sum(axis=-1, keepdims=True)
    u = rng.gamma(0.3, 2.0, SHAPE)
    u[3, :9] = [0.0, 2.0**-30, 2.0**-20, 0.5, 1.0, 1.0 + 2**-40, 4.0, 1e5, 3.0]
    codes = rng.integers(-1, CLASSES, SHAPE)
    return p.astype(dtype), codes, u


def settings(measures=MEASURES, **more):
    return {"measures": MEASURES, "joint_distributions": measures, "ignore": -1, **more}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_counts_are_those_of_numpy(dtype):
    p, codes, u = drawn(dtype)
    evaluation = du.evaluate(p, codes, uncertainty=u, **settings())
    confidence, counted = p.max(axis=-1), codes >= 0
    right = p.argmax(axis=-1) == codes
    for joint in evaluation.confidence_joint:
        found = du.joint_distribution(evaluation, joint.measure)
        of_measure = evaluation.measures[joint.measure]
        # The marginal of the measure is its distribution, whose edges are finer.
        assert set(joint.edges) <= {*of_measure.edges, 0.0}
        starts = np.searchsorted(of_measure.edges, joint.edges[:-1])
        fine = of_measure.histogram[:, ::-1].sum(axis=0)
        np.testing.assert_array_equal(found.sum("confidence"), np.add.reduceat(fine, starts, axis=1))
        edges = as_stored(joint.confidence_edges, np.dtype(dtype), None)
        for outcome, where in (("correct", counted & right), ("wrong", counted & ~right)):
            rows = np.maximum(np.searchsorted(edges, confidence[where].astype(np.float64)) - 1, 0)
            np.testing.assert_array_equal(
                found.sel(outcome=outcome).sum("uncertainty"), np.bincount(rows, minlength=len(edges) - 1)
            )
            if joint.measure == "uncertainty":  # as given: other measures are computed from rounded values
                columns = np.maximum(np.searchsorted(joint.edges, u[where]) - 1, 0)
                wanted = np.zeros(found.shape[1:], np.int64)
                np.add.at(wanted, (rows, columns), 1)
                np.testing.assert_array_equal(found.sel(outcome=outcome), wanted)


def test_parts_add_up_through_chunks_engines_zones_tiles_and_files(tmp_path):
    p, codes, u = drawn("float32")
    zones = np.arange(codes.size).reshape(SHAPE) % 3
    confidence = {"unit": "tile", "size": 8, "replicates": 5}
    whole = du.evaluate(p, codes, uncertainty=u, **settings())
    chunked = da.from_array(p, chunks=(7, 6, CLASSES))
    again = du.evaluate(chunked, codes, uncertainty=u, zones=zones, confidence=confidence, **settings())
    assert again.confidence_joint == whole.confidence_joint
    assert sum(again.zone(name).alone() for name in ("0", "1", "2")).confidence_joint == whole.confidence_joint
    slow = du.evaluate(p, codes, uncertainty=u, engine="reference", **settings())
    # Other measures are ties with edges here, which the engines may round to either side.
    assert slow.confidence_joint[2] == whole.confidence_joint[2]
    du.save(again, tmp_path / "saved.zarr")
    assert du.load(tmp_path / "saved.zarr") == again


def test_nothing_is_kept_unasked_and_a_wrong_name_is_refused():
    p, codes, u = drawn("float32")
    plain = du.evaluate(p, codes, measures="gini", ignore=-1)
    assert plain.confidence_joint == ()
    with pytest.raises(InputError, match="joint_distributions"):
        du.joint_distribution(plain, "gini")
    with pytest.raises(InputError, match="'entropie' is not among the measures"):
        du.evaluate(p, codes, measures="entropy", joint_distributions="entropie", ignore=-1)
    with pytest.raises(InputError, match="joint_distributions: `prediction` holds class codes"):
        du.evaluate(
            None, codes, prediction=np.abs(codes), uncertainty=u, classes=["a", "b", "c"], ignore=-1,
            measures="uncertainty",
            joint_distributions="uncertainty",
        )  # fmt: skip
