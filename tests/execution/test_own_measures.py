"""A user's own measures: by name in jobs, as functions in Python; checked before anything is computed."""

import json
import re
from importlib.metadata import EntryPoint

import numpy as np
import pytest
import zarr

import dask_uncert as du
from dask_uncert.clusters.connect import connect
from dask_uncert.formulas import own_measures
from tests.support import ROOT
from tests.support.own_measures import spread

SPREAD = "tests.support.own_measures:spread"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.5), (40, 30)).astype("f4")
    p[3, 4] = np.nan
    return p, rng.integers(0, 4, (40, 30))


def test_functions_and_names_are_the_same_measure(data, tmp_path, monkeypatch):
    by_name = du.evaluate(*data, measures=["gini", SPREAD], block=(7, 30))
    by_function = du.evaluate(
        *data, measures=["gini", spread], engine="reference", maps="spread", maps_store=tmp_path / "m.zarr"
    )
    measure = by_name.measures["spread"]
    assert (measure.histogram == by_function.measures["spread"].histogram).all()
    assert du.moments(by_name, "spread")["mean"] == pytest.approx(0.375 * du.moments(by_name, "gini")["mean"], rel=1e-6)
    definition = du.results(by_name)["measures"]["spread"]["definition"]
    assert definition == {"kind": "own", "function": SPREAD, "upper": 1.0}
    drawn = zarr.open_array(tmp_path / "m.zarr/spread")
    assert drawn.attrs["valid_max"] == 1.0
    np.testing.assert_allclose(drawn[:], 0.5 * (1 - np.square(data[0]).sum(axis=-1)), atol=1e-6)
    closer = du.evaluate(*data, measures={spread: {"upper": 0.375}})
    assert closer.measures["spread"].upper == 0.375
    assert closer.measures["spread"].histogram.sum() == measure.histogram.sum() == data[1].size - 1
    point = EntryPoint("mine", SPREAD, own_measures.GROUP)
    monkeypatch.setattr(own_measures, "entry_points", lambda group: [point] if group == own_measures.GROUP else [])
    assert (du.evaluate(*data, measures="mine").measures["mine"].histogram == measure.histogram).all()
    with pytest.raises(du.InputError, match="Did you mean `mine`"):
        du.evaluate(*data, measures="mime")


def test_the_how_to_runs():
    text = (ROOT / "docs/how-to/own-measure.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, {"__name__": "how_to"})


def test_what_breaks_the_contract_is_refused(data):
    for name, problem in (
        ("of_first", "0 where one class has probability 1. It returned 1 for class 1"),
        ("whole", r"a number for each vector: shape \(1024,\). It returned shape \(\) of float64"),
        ("ranked", "of each vector by itself"),
        ("missing", "cannot be imported .*PYTHONPATH"),
        ("np", "is no function"),
    ):
        with pytest.raises(du.InputError, match=problem):
            du.evaluate(*data, measures=f"tests.support.own_measures:{name}")

    def costly(p):
        return p @ np.arange(4.0) * 0.3 * (1 - p.max(axis=1))

    def unbounded(p):
        return -np.log(p.max(axis=1)) * 3

    def undefined(p):
        with np.errstate(all="ignore"):
            return -(p * np.log(p)).sum(axis=1)

    for function, problem in (
        (costly, "the same for every order of the classes.*moved on by one"),
        (unbounded, r"in \[0, 1\] \(declare another `upper`.*It returned \d"),
        (undefined, "finite .*It returned nan for"),
        (lambda p: p[:, 0], "give a function of your own a name"),
    ):
        with pytest.raises(du.InputError, match=problem):
            du.evaluate(*data, measures=function)
    with pytest.raises(du.InputError, match=r"has no parameter 'uper'\. Did you mean `upper`"):
        du.evaluate(*data, measures={SPREAD: {"uper": 1}})
    with pytest.raises(du.InputError, match="name of another measure"):
        du.evaluate(*data, measures="tests.support.own_measures:gini")


@pytest.mark.slow
def test_on_a_cluster_of_processes(data, tmp_path):
    def local(p):  # cannot be imported on a worker
        return spread(p) * 2

    np.save(tmp_path / "p.npy", data[0])
    np.save(tmp_path / "y.npy", data[1])
    job = {
        "version": 1, "kind": "scene", "classes": list("abcd"), "measures": [{SPREAD: {"upper": 0.5}}], "maps": "spread",
        "inputs": {
            "probabilities": {"store": str(tmp_path / "p.npy"), "dims": ["y", "x", "class"]},
            "reference": {"store": str(tmp_path / "y.npy"), "dims": ["y", "x"]},
        },
        "output": str(tmp_path / "out"),
    }  # fmt: skip
    with connect("local", processes=True) as client:
        found = du.evaluate(*data, measures=local, block=(9, 30))
        by_job = du.run(job, cluster=client)
    assert (found.measures["local"].histogram == du.evaluate(*data, measures=local).measures["local"].histogram).all()
    assert (
        by_job.measures["spread"]
        == du.evaluate(*data, classes=list("abcd"), measures={spread: {"upper": 0.5}}).measures["spread"]
    )
    assert json.loads((tmp_path / "out/results.json").read_text())["measures"]["spread"]["definition"]["upper"] == 0.5
    assert "spread" in (tmp_path / "out/report.html").read_text().lower()
