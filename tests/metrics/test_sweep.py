"""Sweeps: every number lies within its bound of what the pixels themselves give, at any setting."""

import time

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.soft_confusion import CELLS, DAMPING_FORMS, soft_weights
from dask_uncert.formulas.threshold_distributions import DISTRIBUTIONS
from dask_uncert.io.summary_store import load, save
from dask_uncert.metrics import classification
from dask_uncert.metrics.sweep import sweep
from dask_uncert.spec.inputs import Input

KINDS = ("float16", "float32", "float64", "uint8")
NAMED = (0.3, 0.5, 0.7)
SOFT = [{"class": "yes", "thresholds": list(NAMED), "uncertainty": "uncertainty"}]
BINARY = {"classes": ["no", "yes"], "axis": None, "measures": ["gini"], "soft_confusion": SOFT}


def as_input(stored):
    """Probabilities as they are stored, whole numbers with their scale."""
    return Input(stored, scale=1 / 255) if stored.dtype == "uint8" else stored


def drawn(seed, size, kind="float32", largest=1.0):
    """p in its storage, with values on thresholds and ends, and c and u; and p as the numbers it stands for."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.6, size)
    special = rng.random(size) < 0.2
    p[special] = rng.choice([0.0, 1.0, *NAMED, 0.25, 1 / 3], int(special.sum()))
    c = (rng.random(size) < p).astype(np.uint8)
    u = rng.exponential(largest / 4, size)
    u[rng.random(size) < 0.1] = 0.0
    if kind == "uint8":
        stored = np.rint(p * 255).astype(np.uint8)
        return stored, stored * (1 / 255), c, u
    stored = p.astype(kind)
    return stored, stored.astype(np.float64), c, u


def evaluated(stored, c, u, **entry):
    """The Evaluation of a binary prediction, with these changes to its soft confusion."""
    return evaluate(stored, c, uncertainty=u, **{**BINARY, "soft_confusion": [{**SOFT[0], **entry}]})


def directly(p, c, u, threshold, sigma, damping, **words):
    """Cells from the pixels, in float64."""
    found = soft_weights(p, c, threshold, sigma, u, damping, **words)
    return np.array([found[cell].sum() for cell in CELLS])


def assert_within(found, place, cells):
    """Cells and metrics within their bounds."""
    expected = {**dict(zip(CELLS, cells, strict=True)), **cell_metrics(*cells)}
    for name, value in expected.items():
        said, bound = found.values[name][place], found.bounds[name][place]
        if np.isnan(said):
            assert np.isnan(bound)
            continue
        if np.isnan(value):  # nothing is left, but for rounding
            assert cells.sum() < 1e-9 or bound > 0.5
            continue
        assert abs(said - value) <= bound + 1e-15, (name, place, said, value, bound)


def as_stored(threshold, kind):
    return threshold if kind == "uint8" else float(np.dtype(kind).type(threshold))


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    largest=st.sampled_from([0.5, 3.0, 200.0]),
    threshold=st.sampled_from([*NAMED, 0.1234, 0.5001, 0.9]),
    sigma=st.sampled_from([0.0, 1e-4, 0.02, 0.3, 4.0]),
    damping=st.sampled_from([0.0, 0.01, 0.5, 2.0, 30.0]),
    distribution=st.sampled_from(DISTRIBUTIONS),
    form=st.sampled_from(DAMPING_FORMS),
    certainty=st.sampled_from(["paper", "none"]),
    error=st.sampled_from([1e-2, 5e-5]),
)
def test_values_lie_within_their_bounds(
    seed, kind, largest, threshold, sigma, damping, distribution, form, certainty, error
):
    stored, p, c, u = drawn(seed, 400, kind, largest)
    df = 2.5 if distribution == "student-t" else None
    evaluation = evaluated(as_input(stored), c, u, sweep={"error": error})
    words = {"distribution": distribution, "df": df, "damping_form": form, "reference_certainty": certainty}
    found = sweep(evaluation, "yes", threshold, sigma, damping, **words)
    t = as_stored(threshold, kind)
    assert_within(found, (0, 0, 0), directly(p, c, u, t, sigma, damping, **words, reference_threshold=t))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["yes", "no"])
def test_hard_counts_are_exact_at_named_thresholds(kind, name):
    stored, p, c, _ = drawn(3, 5000, kind)
    soft = [{"class": name, "thresholds": list(NAMED)}]
    evaluation = evaluate(as_input(stored), c, **{**BINARY, "soft_confusion": soft})
    found = sweep(evaluation, name, NAMED)
    other = 1 - p if kind == "uint8" else (1 - stored).astype(np.float64)  # as it would be stored
    own, truth = (p, c == 1) if name == "yes" else (other, c == 0)
    for i, threshold in enumerate(NAMED):
        t = as_stored(threshold, kind)
        hard = [
            (truth & (own >= t)).sum(), (~truth & (own <= t)).sum(), (~truth & (own > t)).sum(), (truth & (own < t)).sum()
        ]  # fmt: skip
        assert [round(float(found.values[cell][i, 0, 0]), 6) for cell in CELLS] == hard
        assert max(found.bounds[cell][i].max() for cell in CELLS) < 1e-8
        assert decode(evaluation.soft_confusion[0].weights[i, 0, 0]).tolist() == hard


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    raters=st.sampled_from([None, 3, 4]),
    dtype=st.sampled_from(["float32", "float64"]),
    fixed=st.sampled_from([None, 0.4]),
    threshold=st.sampled_from([0.3, 0.5, 0.62]),
    sigma=st.sampled_from([0.0, 0.05, 0.4]),
    name=st.sampled_from(["yes", "no"]),
)
def test_fuzzy_references(seed, raters, dtype, fixed, threshold, sigma, name):
    stored, p, _, u = drawn(seed, 300)
    votes = np.random.default_rng(seed).integers(0, 13 if raters is None else raters + 1, 300)
    shares = (votes / (12 if raters is None else raters)).astype(dtype)
    soft = [{"class": name, "thresholds": [0.3, 0.5], "uncertainty": "uncertainty", "reference_threshold": fixed}]
    soft[0] = {k: v for k, v in soft[0].items() if v is not None}
    reference = Input(shares, fuzzy=True, **({} if raters is None else {"raters": raters}))
    evaluation = evaluate(stored, reference, uncertainty=u, **{**BINARY, "soft_confusion": soft})
    found = sweep(evaluation, name, thresholds=threshold, sigmas=sigma, dampings=1.0)
    c = shares.astype(np.float64)
    p, c = (p, c) if name == "yes" else ((1 - stored).astype(np.float64), 1 - c)
    level = as_stored(threshold if fixed is None else fixed, dtype)
    cells = directly(p, c, u, as_stored(threshold, "float32"), sigma, 1.0, reference_threshold=level)
    assert_within(found, (0, 0, 0), cells)


def test_shares_that_no_raters_give_are_refused():
    p, shares = np.full(4, 0.5), np.array([0.0, 0.25, 0.3, np.nan])
    with pytest.raises(InputError, match=r"1 counted pixel with shares that are not multiples of 1/4"):
        evaluate(p, Input(shares, fuzzy=True, raters=4), **BINARY, uncertainty=p)
    with pytest.raises(InputError, match="holds codes"):
        evaluate(p, Input(np.array([0, 1, 1, 0]), raters=4), **BINARY, uncertainty=p)


@pytest.mark.parametrize("name", ["soil", "water"])
def test_one_class_of_many_damped_by_a_measure(name):
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.full(3, 0.5), 2000)
    truth = np.array([rng.choice(3, p=row) for row in p])
    soft = [{"thresholds": [0.4], "uncertainty": "gini"}]
    evaluation = evaluate(p, truth, classes=["soil", "tree", "water"], measures=["gini"], soft_confusion=soft)
    assert len(evaluation.joint) == 3
    found = sweep(evaluation, name, thresholds=[0.4, 0.41], sigmas=[0, 0.1], dampings=[0, 3])
    k = ["soil", "tree", "water"].index(name)
    normal = p / p.sum(axis=1, keepdims=True)
    u = 1.5 * (1 - (normal**2).sum(axis=1))
    for place in np.ndindex(2, 2, 2):
        settings_ = (found.thresholds[place[0]], found.sigmas[place[1]], found.dampings[place[2]])
        assert_within(found, place, directly(p[:, k], (truth == k).astype(float), u, *settings_))


@settings(max_examples=10, deadline=None)
@given(block=st.tuples(st.integers(4, 20), st.integers(3, 15)), kind=st.sampled_from(KINDS))
def test_same_bits_for_every_cut(block, kind):
    words = {**BINARY, "soft_confusion": [{**SOFT[0], "sweep": {"memory": 1e6}}]}
    stored, _, c, u = (one.reshape(20, 15) for one in drawn(1, 300, kind))
    whole = evaluate(as_input(stored), c, uncertainty=u, **words)
    cut = evaluate(as_input(da.from_array(stored, chunks=(7, 4))), c, uncertainty=u, **words, block=block)
    assert cut == whole


def test_merging_then_sweeping_is_sweeping_the_whole(tmp_path):
    stored, _, c, u = drawn(2, 1000)
    whole = evaluated(stored, c, u)
    parts = [evaluated(stored[part], c[part], u[part]) for part in (slice(300), slice(300, None))]
    save(sum(parts), tmp_path / "sum.zarr")
    grid = {"thresholds": [0.3, 0.45], "sigmas": [0, 0.1], "dampings": [0, 1.5]}
    assert load(tmp_path / "sum.zarr") == whole
    merged, direct = sweep(load(tmp_path / "sum.zarr"), **grid), sweep(whole, **grid)
    for name, value in direct.values.items():
        np.testing.assert_array_equal(merged.values[name], value)
        np.testing.assert_array_equal(merged.bounds[name], direct.bounds[name])


@pytest.mark.parametrize(("kind", "most"), [("float16", 2e-4), ("uint8", 1e-5)])
def test_few_valued_data_need_no_rows(kind, most):
    stored, p, c, u = drawn(4, 20000, kind)
    evaluation = evaluate(as_input(stored), c, uncertainty=u, **BINARY)
    grid = {"thresholds": [0.3, 0.512], "sigmas": [0.0, 0.02, 0.3], "dampings": [0.0, 0.5, 2.0]}
    found = sweep(evaluation, "yes", **grid)
    for place in np.ndindex(found.share.shape):
        t, damping = as_stored(found.thresholds[place[0]], kind), found.dampings[place[2]]
        cells = directly(p, c, u, t, found.sigmas[place[1]], damping, reference_threshold=t)
        assert_within(found, place, cells)
        assert found.bounds["f1"][place] < (most if damping else 1e-10)


def test_a_coarse_histogram_says_so_and_a_finer_one_is_better():
    stored, _, c, u = drawn(5, 3000)
    bounds = []
    for error in (1e-1, 1e-3, 1e-5):
        one = evaluated(stored, c, u, sweep={"error": error})
        bounds.append(sweep(one, thresholds=0.4321, sigmas=0.01).bounds["f1"].max())
    assert bounds[0] > bounds[1] > bounds[2]
    small = evaluated(stored, c, u, sweep={"memory": 1e5})
    assert small.joint[0].moments.nbytes <= 1e5
    near = np.random.default_rng(0).uniform(0.42, 0.44, 500).astype(np.float32)
    crowded = evaluated(near, c[:500], u[:500], sweep={"memory": 1e5})
    assert sweep(crowded, thresholds=0.4321, sigmas=0.0005).wide == 1
    assert sweep(one, thresholds=0.3, sigmas=0.1).wide == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"class_name": "maybe"}, "no joint histogram of maybe; there are: yes"),
        ({"uncertainty": "gini"}, "no joint histogram of a class damped by gini"),
        ({"thresholds": 1.0}, r"thresholds must lie in \(0, 1\)"),
        ({"sigmas": -0.1}, "a sigma must be a finite number"),
        ({"dampings": np.inf}, "a damping must be a finite number"),
        ({"thresholds": []}, "no threshold is given"),
        ({"distribution": "normal"}, "unknown distribution 'normal'"),
        ({"damping_form": "linear"}, "'linear' is not one of"),
    ],
)
def test_wrong_words_are_refused(words, message):
    stored, _, c, u = drawn(6, 50)
    with pytest.raises(InputError, match=message):
        sweep(evaluate(stored, c, uncertainty=u, **BINARY), **words)


def test_a_class_may_be_counted_damped_and_undamped():
    stored, p, c, u = drawn(9, 300)
    words = (
        {"thresholds": [0.3]},
        {"uncertainty": "uncertainty"},
        {"reference_threshold": 0.6, "thresholds": [0.4]},
    )
    evaluation = evaluate(
        stored, c, uncertainty=u, **{**BINARY, "soft_confusion": [{"class": "yes", **word} for word in words]}
    )
    # A hard reference has any threshold, so the third needs no histogram of its own.
    assert [one.settings.thresholds for one in evaluation.joint] == [(0.3, 0.4), (0.5,)]
    with pytest.raises(
        InputError,
        match=r"more than one joint histogram of yes; there are: yes \(none\), yes \(uncertainty\)",
    ):
        sweep(evaluation, "yes")
    found = sweep(evaluation, "yes", uncertainty="none", thresholds=0.4, sigmas=0.2, reference_threshold=0.6)
    cells = directly(p, c, u, as_stored(0.4, "float32"), 0.2, 0.0, reference_threshold=0.6)
    assert_within(found, (0, 0, 0), cells)
    levels = [{"class": "yes", "reference_threshold": level} for level in (0.3, 0.6)]
    shares = np.linspace(0, 1, 300)
    fuzzy = evaluate(stored, Input(shares, fuzzy=True), **{**BINARY, "soft_confusion": levels})
    for level in (0.3, 0.6):
        one = sweep(fuzzy, "yes", thresholds=0.5, sigmas=0.2, reference_threshold=level)
        assert_within(one, (0, 0, 0), directly(p, shares, u, 0.5, 0.2, 0.0, reference_threshold=level))


def test_what_was_not_counted_is_not_swept():
    stored, _, c, u = drawn(6, 50)
    with pytest.raises(InputError, match="holds no joint histogram"):
        sweep(evaluate(stored, c, classes=["no", "yes"], axis=None))
    assert evaluated(stored, c, u, sweep=False).joint == ()
    undamped = evaluate(stored, c, **{**BINARY, "soft_confusion": [{"class": "yes"}]})
    with pytest.raises(InputError, match="counted without an uncertainty"):
        sweep(undamped, "yes", dampings=1.0)
    for wrong in ("fine", {"error": 0}, {"fine": 1}):
        with pytest.raises(InputError, match="sweep"):
            evaluated(stored, c, u, sweep=wrong)


@pytest.mark.slow
def test_ten_million_points_against_the_direct_kernel():
    rng = np.random.default_rng(11)
    size = 10_000_000
    p = rng.beta(0.7, 0.7, size).astype(np.float32)
    c = (rng.random(size, np.float32) < p).astype(np.uint8)
    u = rng.exponential(0.5, size)
    sigmas = np.linspace(0.02, 0.5, 25).tolist()
    grid = {"thresholds": [0.3, 0.5, 0.8], "sigmas": sigmas, "dampings": [0.0, 0.5, 1.0, 2.0]}
    soft = [{"class": "yes", "uncertainty": "uncertainty", **grid}]
    shape = (4000, 2500)
    evaluation = evaluate(
        p.reshape(shape), c.reshape(shape), uncertainty=u.reshape(shape), **{**BINARY, "measures": [], "soft_confusion": soft}
    )  # fmt: skip
    begin = time.perf_counter()
    found = sweep(evaluation, "yes", **grid)
    seconds = time.perf_counter() - begin
    unnamed = sweep(evaluation, "yes", thresholds=[0.30017, 0.4999], sigmas=sigmas, dampings=grid["dampings"])
    direct = {
        **classification.soft_cells(evaluation.soft_confusion[0]),
        **classification.soft_metrics(evaluation.soft_confusion[0]),
    }
    for name, value in direct.items():
        off = np.abs(found.values[name] - value)
        assert (off <= found.bounds[name]).all(), name
    for name in ("f1", "accuracy", "precision", "recall", "false_positive_rate"):
        assert found.bounds[name].max() < 1e-3
        assert unnamed.bounds[name].max() < 1e-3
        assert np.abs(found.values[name] - direct[name]).max() < 1e-5
    assert seconds < 1.0
