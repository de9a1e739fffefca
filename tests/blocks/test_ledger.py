"""Every pixel is counted or left out for one reason: the ledger against a plain loop, over any cut and any fault."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import prepare
from dask_uncert.formulas.missing_data_bounds import accuracy_bounds, f1_bounds
from dask_uncert.inputs.cube import Cube, declare
from dask_uncert.inputs.raters import mean_of_raters
from dask_uncert.io.lazy_array import MissingChunkMask
from dask_uncert.reports.results.scene import excluded_by_class
from dask_uncert.spec.options import SceneOptions
from dask_uncert.summaries.ledger import REASONS

CODES = (2, 5, 7)
NODATA, IGNORED = 255, 9
SIZE = 12


@st.composite
def scenes(draw):
    """Stored arrays with every fault somewhere, and which chunks of the prediction are missing."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    reference = rng.choice([*CODES, NODATA, IGNORED], (SIZE, SIZE), p=[0.25, 0.25, 0.3, 0.1, 0.1]).astype("u1")
    p = rng.integers(0, 200, (SIZE, SIZE, 3))
    p[..., 2] = 250 - p[..., :2].sum(axis=-1)
    p[p[..., 2] < 0] = (100, 100, 50)
    p = p.astype("u1")  # sums are 250, so a scale of 1/250
    p[rng.random((SIZE, SIZE)) < 0.1, rng.integers(0, 3)] = NODATA
    p[rng.random((SIZE, SIZE)) < 0.1] = 10  # far off the simplex
    u = rng.random((SIZE, SIZE)).astype("f4")
    u[rng.random(u.shape) < 0.1] = np.nan
    u[rng.random(u.shape) < 0.1] = -9999
    mask = rng.random((SIZE, SIZE)) < 0.8
    chunk = draw(st.sampled_from([2, 3, 4, 6]))
    absent = [(i, j, 0) for i in range(SIZE // chunk) for j in range(SIZE // chunk) if rng.random() < 0.15]
    return reference, p, u, mask, chunk, absent


def cubes_of(scene):
    reference, p, u, mask, chunk, absent = scene
    chunks = MissingChunkMask(p.shape, (chunk, chunk, 3), absent, (0, 1))
    prediction = Cube("probabilities", p, ("y", "x", "class"), role="probabilities", leave_out=True)
    cubes = [
        declare(prediction, 1 / 250, nodata=[NODATA]),
        declare(Cube("reference", reference, ("y", "x"), role="labels"), nodata=[NODATA]),
        Cube("mask", mask, ("y", "x"), role="labels"),
        declare(Cube("uncertainty", u, ("y", "x")), nodata=[-9999.0]),
        Cube("missing", chunks, ("y", "x"), chunks.chunks, kind="probabilities", gap="missing_chunk"),
    ]
    return {cube.name: cube for cube in cubes}


def asked(**words):
    classes = {code: str(code) for code in CODES}
    return SceneOptions(classes=classes, ignore=[IGNORED], measures=["entropy"], **words)


def told(scene):
    """Reason and known class of every pixel left out, pixel by pixel."""
    reference, p, u, mask, chunk, absent = scene
    found = np.zeros((len(REASONS), len(CODES) + 1), int)
    for i, j in np.ndindex(SIZE, SIZE):
        code = int(reference[i, j])
        known = CODES.index(code) if code in CODES else len(CODES)
        for reason, holds in (
            ("masked", not mask[i, j]),
            ("ignored", code == IGNORED),
            ("reference_nodata", code == NODATA),
            ("uncertainty_nodata", u[i, j] == -9999),
            ("uncertainty_nan", np.isnan(u[i, j])),
            ("probabilities_missing_chunk", (i // chunk, j // chunk, 0) in absent),
            ("probabilities_nodata", (p[i, j] == NODATA).any()),
            ("probabilities_off", p[i, j].sum() != 250),
        ):
            if holds:
                found[REASONS.index(reason), known] += 1
                break
    return found


@settings(deadline=None, max_examples=20)
@given(scenes(), st.sampled_from([(SIZE, SIZE), (5, 12), (1, 7), (4, 4)]))
def test_every_pixel_is_where_a_plain_loop_puts_it(scene, block):
    found = prepare(asked(), cubes_of(scene), block=block).compute_here()
    wanted = told(scene)
    assert np.array_equal(found.ledger.excluded, wanted)
    assert int(found.ledger.counted) == SIZE * SIZE - wanted.sum()
    assert found.ledger.pixels == SIZE * SIZE
    by_class = excluded_by_class(found)
    assert sum(sum(row.values()) for row in by_class.values()) == wanted.sum()


@settings(deadline=None, max_examples=6)
@given(scenes())
def test_maps_are_undefined_where_the_prediction_has_nothing(tmp_path_factory, scene):
    import zarr

    from dask_uncert.execution.evaluate import with_maps

    store = str(tmp_path_factory.mktemp("maps") / "maps.zarr")
    plan = with_maps(prepare(asked(maps=["entropy", "correct"]), cubes_of(scene)), store)
    plan.compute_here()
    reference, p, u, _, chunk, absent = scene
    gone = (p == NODATA).any(axis=-1) | (p.sum(axis=-1) != 250)
    for i, j, _ in absent:
        gone[i * chunk : (i + 1) * chunk, j * chunk : (j + 1) * chunk] = True
    entropy = zarr.open_group(store)["entropy"][...]
    assert np.array_equal(np.isnan(entropy), gone)
    correct = zarr.open_group(store)["correct"][...]
    assert (correct[gone | (reference == NODATA) | (u == -9999)] == 255).all()


def test_a_chunk_that_any_rater_lacks_leaves_its_pixels_out():
    dims, cubes = ("y", "x"), {"probabilities": Cube("probabilities", np.full((4, 4), 0.9), ("y", "x"))}
    votes = [Cube(name, np.ones((4, 4), "u1"), dims, kind="reference") for name in ("first", "second")]
    cubes["reference"] = mean_of_raters(votes, [0, 1], [], shares=False)
    for vote, chunk in zip(votes, ((0, 0), (1, 1)), strict=True):
        mask, name = MissingChunkMask((4, 4), (2, 2), [chunk], (0, 1)), f"missing_{vote.name}"
        cubes[name] = Cube(name, mask, dims, kind="reference", gap="missing_chunk")
    found = prepare(SceneOptions(classes=["a", "b"], measures=["gini"]), cubes).compute_here()
    assert found.ledger.reasons()["reference_missing_chunk"] == found.ledger.counted == 8


def test_vectors_off_the_simplex_are_refused_unless_the_job_leaves_them_out():
    p = np.array([[0.5, 0.5], [0.2, 0.3], [0.9, 0.1]])
    y = np.array([0, 1, 1])
    with pytest.raises(InputError, match="1 counted pixel whose values are not probabilities"):
        du.evaluate(p, y)
    found = du.evaluate(du.Input(p, out_of_tolerance="leave_out"), y)
    assert found.ledger.reasons() == {"masked": 0, "ignored": 0, "probabilities_off": 1}


@settings(deadline=None, max_examples=20)
@given(
    st.integers(2, 4).flatmap(
        lambda c: st.tuples(
            st.lists(st.lists(st.integers(0, 6), min_size=c, max_size=c), min_size=c, max_size=c),
            st.lists(st.integers(0, 3), min_size=c + 1, max_size=c + 1),
        )
    ),
    st.integers(0, 10_000),
)
@example(drawn=([[0, 0], [0, 0]], [0, 1, 0]), seed=0)
def test_bounds_hold_for_every_way_the_lost_pixels_may_be_and_are_reached(drawn, seed):
    matrix, lost = np.array(drawn[0]), np.array(drawn[1])
    classes, rng = len(matrix), np.random.default_rng(seed)
    low, high = accuracy_bounds(matrix, lost)
    lows, highs = f1_bounds(matrix, lost)

    def numbers(truth, said):
        full = matrix.copy()
        np.add.at(full, (truth, said), 1)
        hit, both = np.diag(full), full.sum(axis=0) + full.sum(axis=1)
        with np.errstate(invalid="ignore"):
            return hit.sum() / full.sum(), 2 * hit / both

    truth = np.repeat(np.arange(classes + 1), lost)
    for _ in range(20):
        own = np.where(truth == classes, rng.integers(0, classes, truth.size), truth)
        accuracy, f1 = numbers(own, rng.integers(0, classes, truth.size))
        if matrix.sum() + truth.size:
            assert low - 1e-12 <= accuracy <= high + 1e-12
        defined = ~np.isnan(f1)
        assert (f1[defined] >= lows[defined] - 1e-12).all()
        assert (f1[defined] <= highs[defined] + 1e-12).all()
    if not matrix.sum() + truth.size:
        return
    for c in range(classes):
        other = (c + 1) % classes
        best = np.where(truth == classes, c, truth)
        reached = numbers(best, best)[1][c]
        assert highs[c] == pytest.approx(lows[c] if np.isnan(reached) else reached, nan_ok=True)
        worst = np.where(truth == classes, other, truth)
        assert numbers(worst, np.where(worst == c, other, c))[1][c] == pytest.approx(lows[c], nan_ok=True)
