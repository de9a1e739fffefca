"""A small scene whose job asks for no maps: its page shows an overview, and nothing else changes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import xarray as xr

import dask_uncert as du
from dask_uncert.io.map_types import Dim
from dask_uncert.io.overview import load_overview
from dask_uncert.reports.figures.maps import picture
from dask_uncert.summaries.registry import AnyEvaluation

UTM = {"x": ("projection_x_coordinate", 500_015.0, 30.0), "y": ("projection_y_coordinate", 4_480_000.0, -30.0)}


def scene(folder, shape=(40, 50)):
    """Write a store with positions in metres, and return a job over it; every fifth row is not labelled."""
    rng = np.random.default_rng(8)
    p = rng.dirichlet([0.6, 0.6, 0.6], shape)
    y = np.where(rng.random(shape) < 0.8, p.argmax(-1), 0) + 1
    y[::5] = 0
    coords = {
        dim: (dim, first + step * np.arange(n), {"units": "m", "standard_name": name})
        for (dim, (name, first, step)), n in zip(UTM.items(), shape[::-1], strict=True)
    }
    data = {"p": (("y", "x", "class"), p.astype("float32")), "y_true": (("y", "x"), y.astype("uint8"))}
    xr.Dataset(data, coords).to_zarr(folder / "scene.zarr", zarr_format=3, consolidated=False)
    inputs = {
        name: {"store": "scene.zarr", "array": array}
        for name, array in (("probabilities", "p"), ("reference", "y_true"))
    }
    return {
        "version": 1, "kind": "scene", "inputs": inputs, "classes": {1: "a", 2: "b", 3: "c"}, "ignore": [0],
        "measures": ["gini", "entropy"],
    }  # fmt: skip


def run(folder, job, out) -> AnyEvaluation:
    path = folder / "job.json"
    path.write_text(json.dumps({**job, "output": out}))
    return du.run(path)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The folders of the same job with an overview and without one."""
    folder = tmp_path_factory.mktemp("overview")
    job = scene(folder)
    run(folder, job, "with")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dask_uncert.execution.evaluate.OVERVIEW_PIXELS", 40 * 50)
        run(folder, job, "without")
    return folder, folder / "with", folder / "without"


def titles(out):
    return re.findall(r'aria-label="Enlarge: ([^"]+)"', (out / "report.html").read_text())


def test_the_page_shows_decisions_right_and_wrong_and_the_first_measure(both):
    _, shown, bare = both
    assert titles(shown) == ["Predicted class", "Correct or wrong", "Gini"]
    assert titles(bare) == []


def test_no_map_store_is_left_and_counts_have_the_same_bits(both):
    folder, shown, bare = both
    assert not list(folder.rglob("maps.zarr"))
    assert json.loads((shown / "run.json").read_text())["maps"] == []
    assert (shown / "results.json").read_bytes() == (bare / "results.json").read_bytes()
    names = [{str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} for out in (shown, bare)]
    assert {name.partition("/")[0] for name in names[0] ^ names[1]} == {"figures"}
    counts = [path for path in bare.rglob("summary.zarr/**/c/**/*") if path.is_file()]
    assert len(counts) > 10
    for path in counts:
        assert path.read_bytes() == (shown / path.relative_to(bare)).read_bytes()


def test_a_report_written_again_shows_the_same_overview(both):
    _, shown, _ = both
    before = (shown / "report.html").read_bytes()
    du.report(shown)
    assert (shown / "report.html").read_bytes() == before


def test_axes_show_positions_with_units_or_say_that_they_count_pixels(both):
    _, shown, _ = both
    evaluation, maps = du.load(shown), load_overview(shown)
    axes = picture(evaluation, "gini", *maps["gini"]).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (km)", "y (km)")
    for (_, first, step), ticks, labels in (
        (UTM["x"], axes.get_xticks(), axes.get_xticklabels()),
        (UTM["y"], axes.get_yticks(), axes.get_yticklabels()),
    ):
        assert len(ticks) > 2
        assert [float(label.get_text()) for label in labels] == pytest.approx((first + step * ticks) / 1000)
    values = maps["gini"][0]
    assert np.isnan(values[::5]).all()  # not labelled
    thinned = picture(evaluation, "gini", values, (Dim.placed("y", 0.0, 7, "y (pixels)"), "x")).axes[0]
    assert (thinned.get_xlabel(), thinned.get_ylabel()) == ("x (pixels)", "y (pixels)")
    assert [float(label.get_text()) for label in thinned.get_yticklabels()] == pytest.approx(7 * thinned.get_yticks())
