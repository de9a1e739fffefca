"""The figures show the counts, without warnings, under safe names and with the same bytes every time."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal

import dask_uncert as du
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.distributions import quantiles
from dask_uncert.formulas.soft_confusion import soft_weights
from dask_uncert.io.maps import preview
from dask_uncert.reports.figures.calibration import POINTS, class_curves, drawn_classes
from dask_uncert.reports.figures.confusion import uncertainty_matrices
from dask_uncert.reports.figures.curves import ecdf, panels
from dask_uncert.reports.figures.distributions import (
    SHARES,
    by_class,
    by_confused_classes,
    chosen_threshold,
    densities,
    density_bars,
)
from dask_uncert.reports.figures.layout import plan_legend, png
from dask_uncert.reports.figures.maps import map_figure_names, measure_maps, picture, soft_maps
from dask_uncert.reports.figures.mistakes import frequent_mistakes, homophily_and_gini
from dask_uncert.reports.figures.registry import figure_files, figures
from dask_uncert.reports.figures.soft_maps import soft_map
from dask_uncert.reports.figures.style import CELLS, thin_out
from dask_uncert.reports.figures.sweep import F1, OTHERS, SIGMAS, drawn_histograms, drawn_sweep, sweep_panels
from dask_uncert.reports.figures.weights import weight_functions
from dask_uncert.summaries.distribution import Distribution

CLASSES = {1: "soil", 2: "Corn, no till", 7: "US$ <b>/tree_1"}
TABLE = [[0, 1, 2], [1, 0, 0.1], [2, 0.1, 0]]
THRESHOLDS = (0.2, 0.4, 0.55, 0.9)
MAPS = ["gini", "homophily", "uncertainty", "correct", "confused_classes", "predicted"]
LABELS = ("Corn_no_till", "US_b_tree_1")
SOFT = [
    {"class": ["Corn, no till", "US$ <b>/tree_1"], "thresholds": [0.4, 0.7], "sigmas": [0.2, 0], "dampings": [1, 0],
     "uncertainty": "gini", "maps": True},
    {"class": "soil", "thresholds": [0.5], "sigmas": [0.1], "distribution": "student-t", "df": 3},
]  # fmt: skip


class Scene:
    """Predictions, a reference that partly agrees, and their evaluation."""

    def __init__(self, folder, seed=5, shape=(31, 23), wrong=0.4):
        rng = np.random.default_rng(seed)
        self.p = rng.dirichlet(np.full(3, 0.7), shape)
        decided = self.p.argmax(-1)
        self.truth = np.where(rng.random(shape) < wrong, rng.integers(0, 3, shape), decided)
        self.u = rng.lognormal(-4, 2, shape) * (rng.random(shape) < 0.9)
        self.mask = rng.random(shape) < 0.9
        self.store = str(folder / "maps.zarr")
        self.evaluation = evaluate(
            self.p,
            np.array([1, 2, 7])[self.truth],
            mask=self.mask,
            uncertainty=self.u,
            classes=CLASSES,
            measures=["gini", "homophily", "uncertainty"],
            class_distances={"table": TABLE},
            soft_confusion=SOFT,
            uncertainty_confusion={"thresholds": THRESHOLDS},
            maps=MAPS,
            maps_store=self.store,
        )
        soft = [f"soft_{cell}{label}" for label in LABELS for cell in (*(f"{c}_" for c in CELLS), "")]
        self.maps = {name: preview(self.store, name) for name in (*MAPS, *soft)}

    @property
    def counted(self):
        """Probabilities, truth, prediction and predicted uncertainty of the counted pixels."""
        p, truth = self.p[self.mask], self.truth[self.mask]
        return p, truth, p.argmax(-1), self.u[self.mask]

    def values(self):
        p, _, _, u = self.counted
        h = np.square(np.array(TABLE))
        largest = du.simplex_maximum(h)[0]
        return {
            "gini": 1.5 * (1 - np.square(p).sum(-1)),
            "homophily": np.einsum("ni,ij,nj->n", p, h, p) / largest,
            "uncertainty": u,
        }


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return Scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def files(scene):
    return figure_files(figures(scene.evaluation, scene.maps))


def offsets(line):
    """Ends of the strokes of `hlines` or `vlines`, (strokes, 2, 2)."""
    return np.array(line.get_segments())


def test_every_figure_is_drawn(scene):
    names = """ecdf densities by_class by_confused_classes homophily_and_gini uncertainty_confusion uncertainty_matrices
        risk_coverage reliability corp class_calibration confusion classes soft_weights maps_of_measures map_gini
        map_homophily map_uncertainty map_correct map_confused_classes map_predicted soft_f1_soil soft_metrics_soil"""
    kinds = ("soft_f1", "soft_metrics", "soft_maps", "map_soft")
    soft = {f"{kind}_{label}" for kind in kinds for label in LABELS}
    assert {name for name, _ in figures(scene.evaluation, scene.maps)} == {*names.split()} | soft


@pytest.mark.slow
def test_names_are_safe_and_figures_have_the_same_bytes_again(scene, files):
    for name, content in files.items():
        assert re.fullmatch(r"[A-Za-z0-9._-]+\.(png|svg)", name)
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    # one of every kind
    repeated = ("_tree_1", "_soil", "map_homophily", "map_confused_classes", "map_predicted")
    once = {name.rsplit(".", 1)[0] for name in files}
    once = {name for name in once if not name.endswith(repeated)}
    again = figure_files(figures(scene.evaluation, scene.maps, {*once, "unknown"}))
    assert len(again) == 2 * len(once)
    assert again == {name: files[name] for name in again}


def test_ecdf_panels_show_the_share_at_or_below(scene):
    _, truth, decided, _ = scene.counted
    for axes, values in zip(panels(scene.evaluation, ecdf).axes, scene.values().values(), strict=True):
        for line, chosen in zip(axes.lines, (truth == decided, truth != decided), strict=True):
            x, y = line.get_data()
            # an edge may be met by a value that rounding put on its other side
            low, high = (np.searchsorted(np.sort(values[chosen]), x + off, "right") for off in (-1e-9, 1e-9))
            assert ((low / chosen.sum() - 1e-12 <= y) & (y <= high / chosen.sum() + 1e-12)).all()


def test_densities_add_up_to_one(scene):
    _, truth, decided, _ = scene.counted
    figure = densities(scene.evaluation)
    for (name, values), axes in zip(scene.values().items(), figure.axes, strict=True):
        outlines = [patch for patch in axes.patches if not patch.get_fill()]
        for patch, chosen in zip(outlines, (truth == decided, truth != decided), strict=True):
            density, bounds, _ = patch.get_data()
            inside = values[chosen & (values > bounds[0])] if name == "uncertainty" else values[chosen]
            counts = np.histogram(inside, bounds)[0]
            width = np.diff(np.log10(bounds) if name == "uncertainty" else bounds)
            assert_allclose(density * width * chosen.sum(), counts, atol=1e-9)
        tau = chosen_threshold(scene.evaluation, name)
        wrong, right = values[truth != decided], values[truth == decided]
        scores = {t: (wrong > t).mean() + (right <= t).mean() for t in THRESHOLDS}
        assert scores[tau] == max(scores.values())
        assert offsets(axes.collections[-1])[:, :, 0].tolist() == [[tau, tau]]


@settings(max_examples=15, deadline=None)
@given(st.booleans(), st.sets(st.floats(0.001, 0.99), max_size=4), st.integers(0, 2**32), st.integers(0, 9))
def test_bars_are_whole_bins(wide, chosen, seed, most):
    thresholds = tuple(sorted(chosen))
    kind = "uncertainty" if wide else "geometric"
    measure = Distribution.zero(du.formulas.measures.Measure("u", kind), thresholds, 2)
    bins = len(measure.edges) - 1
    n = np.random.default_rng(seed).integers(0, most + 1, bins)
    bounds, density = density_bars(measure, n)
    edges = np.array(measure.edges)
    assert np.isin(bounds, edges).all()
    if n.sum():
        width = np.diff(np.log10(bounds) if wide else bounds)
        below = n[0] if wide else 0
        assert_allclose((density * width).sum(), 1 - below / n.sum())
    else:
        assert np.isnan(density).all()


def test_figures_by_class_are_means_and_quantiles_of_the_pixels(scene):
    _, truth, decided, _ = scene.counted
    figure = by_class(scene.evaluation)
    for (name, values), axes in zip(scene.values().items(), figure.axes, strict=True):
        measure = scene.evaluation.measures[name]
        strokes = [offsets(line) for line in axes.collections]
        for i, right in enumerate((True, False)):
            groups = [values[(truth == k) & ((truth == decided) == right)] for k in range(3)]
            assert_allclose(axes.lines[i].get_xdata(), [g.mean() for g in groups], rtol=1e-9)
            spread = quantiles(measure.histogram[:, int(right)], np.array(measure.edges), SHARES)
            assert_array_equal(strokes[2 * i][:, :, 0], spread[:, [0, 4]])
            assert_array_equal(strokes[2 * i + 1][:, :, 0], spread[:, [1, 3]])


def test_figures_by_confused_classes_are_moments_of_the_pixels(scene):
    p, truth, decided, _ = scene.counted
    number = (p > 1 / 3).sum(-1)
    figure = by_confused_classes(scene.evaluation)
    *of_measures, counts = figure.axes
    for values, axes in zip(scene.values().values(), of_measures, strict=True):
        for line, strokes, right in zip(axes.lines, axes.collections, (True, False), strict=True):
            groups = [values[(number == k) & ((truth == decided) == right)] for k in np.unique(number)]
            assert_allclose(line.get_ydata(), [g.mean() for g in groups], rtol=1e-9)
            ends = offsets(strokes)[:, :, 1]
            assert_allclose(np.diff(ends, axis=1)[:, 0] / 2, [g.std() for g in groups], atol=1e-6)
    groups = [(right, k) for right in (True, False) for k in np.unique(number)]
    sizes = [((number == k) & ((truth == decided) == right)).sum() for right, k in groups]
    assert [bar.get_height() for bar in counts.patches] == sizes


def test_homophily_and_gini_are_means_over_each_mistake(scene):
    p, truth, decided, _ = scene.counted
    second = np.argsort(-p, axis=-1, kind="stable")[:, 1]
    values = scene.values()
    pairs = frequent_mistakes(scene.evaluation)
    sizes = [int(((truth == i) & (decided == k)).sum()) for i, k in pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert len(pairs) == 6
    for axes, near in zip(homophily_and_gini(scene.evaluation).axes, (True, False), strict=True):
        chosen = [(truth == i) & (decided == k) & ((second == i) == near) for i, k in pairs]
        for line, name in zip(axes.lines, ("homophily", "gini"), strict=True):
            assert_allclose(line.get_xdata(), [values[name][c].mean() for c in chosen], rtol=1e-9)
        pixels = [int(text.get_text()) for text in axes.texts if text.get_text().isdigit()]
        assert pixels == [int(c.sum()) for c in chosen]


def test_matrices_count_right_and_wrong_certain_and_uncertain(scene):
    _, truth, decided, _ = scene.counted
    (axes,) = uncertainty_matrices(scene.evaluation).axes
    texts = [text.get_text() for text in axes.texts]
    shares = axes.collections[0].get_array()
    start = 0
    for name, values in scene.values().items():
        best = chosen_threshold(scene.evaluation, name)
        for tau in (0.2, best if best in THRESHOLDS[1:3] else 0.55, 0.9):
            assert f"τ = {tau:g}" in texts
            right, certain = truth == decided, values <= tau
            counts = [int((right & certain).sum()), int((right & ~certain).sum())]
            counts += [int((~right & certain).sum()), int((~right & ~certain).sum())]
            for cell, count in zip(("TC", "FU", "FC", "TU"), counts, strict=True):
                assert f"{cell}\n{count:,}" in texts
            rows = np.array(counts).reshape(2, 2)
            assert_allclose(shares[start : start + 4].reshape(2, 2), rows / rows.sum(axis=1, keepdims=True))
            start += 4
    assert start == len(shares)


def test_class_curves_are_the_shares_in_windows(scene):
    figure = class_curves(scene.evaluation)
    assert drawn_classes(scene.evaluation) == [0, 1, 2]
    p = scene.counted[0]
    for k, axes in enumerate(figure.axes):
        thin, thick = axes.lines[-2:]
        n, share = du.windows_curve(scene.evaluation, k, POINTS)
        assert_array_equal(thin.get_data(), (POINTS, share))
        assert_array_equal(thick.get_ydata(), np.where(n >= 10, share, np.nan))
        # whole bins are counted, so the ends of the window are uncertain by the width of a bin
        low, high = ((np.abs(p[:, k, None] - POINTS) <= width).sum(axis=0) for width in (0.049, 0.051))
        assert ((low <= n) & (n <= high)).all()
    binary = evaluate(np.array([0.2, 0.9]), np.array([0, 1]), axis=None, classes=["no", "yes"])
    assert drawn_classes(binary) == [1]


def test_weights_are_drawn_as_functions(scene):
    figure = weight_functions(scene.evaluation)
    first, second, damping, student = figure.axes
    for axes, t in ((first, 0.4), (second, 0.7)):
        dotted, hard, soft = axes.lines
        assert dotted.get_xdata() == [t, t]
        assert set(hard.get_ydata()) == {1}
        p = soft.get_xdata()
        cells = soft_weights(p, np.ones(p.size), t, 0.2, reference_certainty="none")
        assert_allclose(soft.get_ydata(), cells["TP"] + cells["FN"])
    flat, falling = damping.lines
    assert set(flat.get_ydata()) == {1}
    assert_allclose(falling.get_ydata(), np.exp(-falling.get_xdata()))
    assert [text.get_text() for text in student.get_legend().get_texts()] == ["σ = 0.1"]
    assert weight_functions(evaluate([[0.5, 0.5]], [0])) is None


@pytest.mark.parametrize("metrics", [F1, OTHERS])
def test_sweeps_are_drawn_with_the_share_of_weight_left(scene, metrics):
    p, truth, _, _ = scene.counted
    for k, joint in enumerate(sorted(scene.evaluation.joint, key=lambda joint: joint.settings.class_index)):
        swept = drawn_sweep(scene.evaluation, joint)
        figure = sweep_panels(scene.evaluation, joint, metrics)
        columns = len(metrics) + 1
        assert len(figure.axes) == columns * len(swept.thresholds)
        options = {"distribution": "student-t", "df": 3} if k == 0 else {}
        u = None if k == 0 else scene.values()["gini"]
        for row, t in enumerate(swept.thresholds):
            share = figure.axes[row * columns + len(metrics)]
            assert len(share.lines) == len(swept.dampings) == (1 if k == 0 else 4)
            for i, sigma in ((0, 0.0), (5, 0.1), (25, 0.5)):
                assert SIGMAS[i] == sigma
                for line, d in enumerate(swept.dampings):
                    cells = soft_weights(p[:, k], truth == k, t, sigma, u=u, damping=d, **options)
                    tp, tn, fp, fn = (cells[cell].sum() for cell in ("TP", "TN", "FP", "FN"))
                    left = (tp + tn + fp + fn) / truth.size
                    assert_allclose(share.lines[line].get_ydata()[i], left, atol=1e-4)
                    wanted = {
                        "f1": 2 * tp / (2 * tp + fp + fn),
                        "accuracy": (tp + tn) / (tp + tn + fp + fn),
                        "precision": tp / (tp + fp),
                        "recall": tp / (tp + fn),
                        "false_positive_rate": fp / (fp + tn),
                    }
                    for column, metric in enumerate(metrics):
                        drawn = figure.axes[row * columns + column].lines[line].get_ydata()[i]
                        bound = swept.bounds[metric][row, i, line]
                        assert abs(drawn - wanted[metric]) <= bound + 1e-12
                        low, high = figure.axes[row * columns + column].get_ylim()
                        assert low <= drawn <= high


def test_histograms_with_most_reference_pixels_are_drawn(scene, monkeypatch):
    monkeypatch.setattr("dask_uncert.reports.figures.sweep.MOST_HISTOGRAMS", 2)
    support = np.bincount(scene.counted[1])
    drawn = [joint.settings.class_index for joint in drawn_histograms(scene.evaluation).values()]
    assert sorted(support[drawn]) == sorted(support)[1:]


def test_measure_maps_share_one_scale(scene):
    figure = measure_maps(scene.evaluation, scene.maps)
    gini, homophily, correct, *_ = figure.axes
    for axes, name in ((gini, "gini"), (homophily, "homophily")):
        (image,) = axes.images
        assert_array_equal(image.get_array().filled(np.nan), scene.maps[name][0])
        assert image.get_clim() == (0, 1)
    level = np.where(scene.mask, scene.p.argmax(-1) != scene.truth, 2)
    assert_array_equal(correct.images[0].get_array().filled(2), level)
    for names in (["gini"], ["uncertainty", "correct"]):
        assert measure_maps(scene.evaluation, {name: scene.maps[name] for name in names}) is None


def test_soft_maps_are_paler_where_weights_are_smaller(scene):
    first, second = soft_maps(scene.maps)
    assert (first.label, second.label) == LABELS
    tp, fn, fp, tn, merged, ramps = soft_map(scene.evaluation, first).axes
    t = 0.4
    gini = 1.5 * (1 - np.square(scene.p).sum(-1))
    weights = soft_weights(scene.p[..., 1], scene.truth == 1, t, 0.2, u=gini, damping=1)
    total = np.ones((*scene.mask.shape, 3))
    for cell, axes in (("TP", tp), ("FN", fn), ("FP", fp), ("TN", tn)):
        colours = 1 - weights[cell][..., None] * (1 - np.array(to_rgb(CELLS[cell])))
        total -= 1 - colours
        drawn = axes.images[0].get_array()
        assert_array_equal(drawn[..., 3], scene.mask)
        assert_allclose(drawn[scene.mask][:, :3], colours[scene.mask], atol=1e-6)
    assert_allclose(merged.images[0].get_array()[scene.mask][:, :3], total[scene.mask], atol=1e-6)
    assert [label.get_text() for label in ramps.get_xticklabels()] == list(CELLS)
    names = map_figure_names(scene.maps)
    assert [name for name in names if name.startswith("soft_")] == [f"soft_{label}" for label in LABELS]
    stored = picture(scene.evaluation, "soft_Corn_no_till", *scene.maps["soft_Corn_no_till"]).axes[0]
    assert_array_equal(stored.images[0].get_array(), scene.maps["soft_Corn_no_till"][0])


NOTHING = {
    "nothing counted": {"mask": np.zeros((5, 4), bool)},
    "nothing wrong": {"reference": "decided"},
    "nothing right": {"reference": "wrong"},
    "one pixel": {"mask": np.arange(20).reshape(5, 4) == 7},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", NOTHING.values(), ids=NOTHING)
def test_undefined_numbers_are_drawn_without_a_warning(options, tmp_path):
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), (5, 4))
    decided = p.argmax(-1)
    options = dict(options)
    reference = (decided + 1) % 3 if options.pop("reference", None) == "wrong" else decided
    names = ["gini", "homophily", "correct", "confused_classes", "uncertainty"]
    store = str(tmp_path / "maps.zarr")
    evaluation = evaluate(
        p, np.array([1, 2, 7])[reference], classes=CLASSES, measures=["gini", "homophily", "uncertainty"],
        uncertainty=rng.random((5, 4)), class_distances={"table": TABLE}, maps=names, maps_store=store,
        soft_confusion=[{"uncertainty": "uncertainty", "dampings": [0, 3], "sigmas": [0, 0.1], "maps": True}], **options,
    )  # fmt: skip
    names += [f"soft_{cell}_soil" for cell in CELLS] + ["soft_soil"]
    maps = {name: preview(store, name) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = dict(figures(evaluation, maps))
        for name, figure in drawn.items():
            if evaluation.ledger.counted == 0 or name.startswith(("soft", "dens")):
                assert png(figure).startswith(b"\x89PNG")
    assert ("homophily_and_gini" in drawn) == (reference is not decided)
    assert ("by_confused_classes" in drawn) == bool(evaluation.ledger.counted)


def test_maps_of_one_dimension_are_left_out():
    evaluation = evaluate(np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([1, 0]), measures=["gini"])
    maps = {"gini": (np.array([0.6, 0.9]), ("x",))}
    assert not [name for name, _ in figures(evaluation, maps) if name.startswith("map")]


@given(st.lists(st.floats(0, 10), min_size=1), st.integers(2, 8))
def test_thinned_values_keep_the_ends(values, most):
    thinned = thin_out(values, most)
    assert len(thinned) == min(most, len(set(values)))
    assert thinned == sorted(set(thinned) & set(values))
    assert (thinned[0], thinned[-1]) == (min(values), max(values))


@settings(max_examples=15)
@given(st.lists(st.text("abcdefg", max_size=30), min_size=1, max_size=9), st.floats(1, 12))
def test_a_legend_has_room_for_every_label(labels, width):
    plan = plan_legend(labels, width)
    assert plan.columns * plan.lines >= len(labels)
    assert (plan.columns - 1) * plan.lines < len(labels)
