"""The process that draws a report: the same bytes, and this process draws wherever that one cannot."""

from __future__ import annotations

import sys
import warnings

import jinja2
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.io.map_types import Dim
from dask_uncert.reports import drawing, pictures
from dask_uncert.reports.page.templates import environment, load_templates
from dask_uncert.reports.write import write_all

MAPS = {"gini": (np.linspace(0, 0.5, 12).reshape(3, 4), (Dim.placed("y", 5.0, 2.0, "y (m)"), "x"))}
NOT_IN_THE_FONT = "\N{CJK UNIFIED IDEOGRAPH-6C34}"


def scene(name="water"):
    p = np.random.default_rng(0).dirichlet([1, 1], (9, 9))
    return du.evaluate(p, np.tile([0, 1, 1], (9, 3)), measures=["gini"], classes=[name, "land"])


@pytest.fixture(autouse=True)
def no_page(monkeypatch):
    """Loading what draws, here, does not keep the other process from starting."""
    monkeypatch.setattr(drawing, "_saves_time", lambda: True)


def written(folder, evaluation, **how):
    return {name: (folder / name).read_bytes() for name in write_all(evaluation, folder, MAPS, {"title": "t"}, **how)}


@pytest.mark.slow
def test_it_draws_the_same_bytes_and_ends(tmp_path, monkeypatch):
    evaluation, steps = scene(), []
    here = written(tmp_path / "here", evaluation)
    monkeypatch.setattr(pictures, "draw", None)  # of this process
    drawing.load_ahead()
    ahead = drawing._ahead
    with drawing.drawing_process() as process:
        process.begin(evaluation, MAPS)
        there = written(tmp_path / "there", evaluation, drawing=process, progress=lambda *step: steps.append(step))
    assert there == here
    figures = len([*(tmp_path / "there/figures").iterdir()])
    assert ("report: figures", figures, figures) in steps
    assert ahead.returncode is not None
    assert drawing._ahead is None


def killed(monkeypatch):
    start = drawing._start

    def start_and_kill():
        process = start()
        process.kill()
        return process

    monkeypatch.setattr(drawing, "_start", start_and_kill)


def frozen(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)


def embedded(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/usr/bin/qgis")


def gone(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")


@pytest.mark.parametrize("broken", [killed, frozen, embedded, gone])
def test_this_process_draws_where_that_one_cannot(tmp_path, monkeypatch, broken):
    broken(monkeypatch)
    monkeypatch.setattr(pictures, "draw", lambda *a: {"a.png": b"here"})
    monkeypatch.setattr(pictures, "with_page", lambda *a: {"figures/a.png": a[4]["a.png"]})
    with drawing.drawing_process() as process:
        process.begin(scene(), MAPS)
        write_all(scene(), tmp_path, MAPS, drawing=process)
    assert (tmp_path / "figures/a.png").read_bytes() == b"here"


@pytest.mark.slow
def test_a_warning_of_drawing_is_shown_by_this_process(tmp_path):
    evaluation = scene(NOT_IN_THE_FONT)
    with drawing.drawing_process() as process, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        process.begin(evaluation, MAPS, all_figures=True)
        assert process.finish({}, {}, drawing.silent) is None
        write_all(evaluation, tmp_path, MAPS, all_figures=True, drawing=process)
    assert any("missing from font" in str(warning.message) for warning in caught)


def test_templates_are_compiled_once(monkeypatch):
    load_templates()
    monkeypatch.setattr(jinja2.Environment, "compile", lambda *a: pytest.fail("it was compiled again"))
    assert environment("pixel").get_template("scene.html.jinja")


def test_a_large_job_does_without(monkeypatch):
    drawing.load_ahead()
    ahead = drawing._ahead
    with drawing.drawing_process(drawing.SMALL) as process:
        assert process.finish({}, {}, drawing.silent) is None
    assert ahead.returncode is not None
