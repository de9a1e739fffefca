"""A report of what was evaluated in Python: the folder that a job would have written."""

import json

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import dask_uncert as du
from dask_uncert.cli import main
from dask_uncert.reports import write
from dask_uncert.reports.results.read import DEFAULT_INTERVALS
from dask_uncert.reports.results.schema import results_schema


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Figures and page are most of the time, and have their own tests; so are a thousand replicates."""
    monkeypatch.setitem(DEFAULT_INTERVALS, "replicates", 20)
    monkeypatch.setattr(write, "figures_and_page", lambda *a: {"report.html": b"page"})


TILES = {"size": 4, "replicates": 20}


def scene(store=None, seed=0, tiles=TILES):
    rng = np.random.default_rng(seed)
    p, y = rng.dirichlet(np.ones(3), (16, 16)), rng.integers(0, 3, (16, 16))
    maps = {} if store is None else {"maps": ["correct", "gini"], "maps_store": store}
    return du.evaluate(p, y, measures=["gini"], classes=["a", "b", "c"], confidence=tiles, **maps)


def test_the_report_of_arrays_is_a_finished_folder(tmp_path):
    evaluation, out = scene(tmp_path / "maps.zarr"), tmp_path / "out"
    assert du.report(evaluation, out, maps=tmp_path / "maps.zarr") == evaluation
    assert {path.name for path in out.iterdir()} == {
        "maps.zarr", "report.html", "results.json", "run.json", "summary.zarr", "tables"
    }  # fmt: skip
    assert du.load(out) == evaluation
    assert json.loads((out / "results.json").read_text()) == du.results(evaluation)
    again = CliRunner().invoke(main.cli, ["report", str(out)], standalone_mode=False)
    assert again.exception is None
    du.export(out, "gini", tmp_path / "gini.nc")
    before = (out / "run.json").read_bytes()
    du.report(evaluation, out, maps=tmp_path / "maps.zarr")  # the same: left as it is
    assert (out / "run.json").read_bytes() == before
    with pytest.raises(du.InputError, match="another job"):
        du.report(scene(seed=1), out)
    du.report(scene(seed=1), out, fresh=True)
    assert du.load(out) == scene(seed=1)
    assert not (out / "maps.zarr").exists()


@pytest.mark.slow
def test_the_report_of_cases_is_a_cohort(tmp_path):
    cases = {f"P{i}": scene(seed=i, tiles=None) for i in range(4)}
    stack = du.Stack.of(cases, groups={"site": {"P0": "A", "P1": "B", "P2": "A", "P3": "B"}})
    assert du.report(stack, tmp_path / "out") == stack.total()
    assert du.load_cases(tmp_path / "out") == stack
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    jsonschema.validate(results, results_schema())
    assert results == du.results(stack)
    assert results["cohort"]["groups"] == {"site": {"A": 2, "B": 2}}
    assert du.compare(tmp_path / "out", stack, replicates=20).pooled_difference.max() == 0


def test_a_report_that_names_no_folder_or_two_is_refused(tmp_path):
    with pytest.raises(du.InputError, match="name the folder to write"):
        du.report(scene())
    with pytest.raises(du.InputError, match="is an output folder"):
        du.report(tmp_path, tmp_path / "other")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_folders_of_scenes_are_compared(tmp_path):
    for seed, name in enumerate("ab"):
        du.report(scene(seed=seed), tmp_path / name)
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--replicates", "20", "--permutations", "20"]
    done = CliRunner().invoke(main.cli, words, standalone_mode=False)
    assert done.exception is None, done.exception
    assert "16 tiles" in done.output
    assert "mean: over tiles" in done.output
