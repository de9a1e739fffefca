"""Zones in results, tables and on the page: each has the numbers of its own evaluation."""

from __future__ import annotations

import csv
import json

import jsonschema
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.reports.page.templates import environment
from dask_uncert.reports.page.zones import zones_context
from dask_uncert.reports.results.schema import results_schema

NAMES = {3: "north", 1: "south", 8: "sea"}


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([0.5] * 3, (24, 24)), rng.integers(0, 3, (24, 24))
    y = np.where(rng.random(y.shape) < 0.5, p.argmax(axis=-1), y)
    codes = np.where(np.arange(24) < 10, 3, 1) + np.zeros((24, 1))
    codes[:2] = np.nan
    tiles = {"unit": "tile", "size": 6, "replicates": 50}
    zones = du.Input(codes, names=NAMES)
    return du.evaluate(p, y, classes=["a", "b/c", "d"], zones=zones, measures=["gini"], confidence=tiles)


def test_results_of_a_zone_are_those_of_its_evaluation(scene):
    found = du.results(scene)
    jsonschema.validate(found, results_schema())
    assert list(found["zones"]) == ["south", "north", "sea"]  # by code
    for name in ("north", "south"):
        zone, alone = found["zones"][name], du.results(scene.zone(name))
        assert (zone["code"], zone["counted"], zone["tiles"]) == (
            {"north": 3, "south": 1}[name], alone["counted"], alone["confidence"]["units"],
        )  # fmt: skip
        for key in ("accuracy", "kappa", "macro_f1", "accuracy_interval", "kappa_interval"):
            assert zone["overall"][key] == alone["overall"][key]
        assert zone["calibration"] == {key: alone["calibration"][key] for key in ("ece", "ece_interval")}
        assert zone["selective"]["gini"]["error_auroc"] == alone["selective"]["gini"]["error_auroc"]
        for own in alone["classes"]:
            assert zone["classes"][own["name"]] == {key: own[key] for key in zone["classes"][own["name"]]}
    others = du.results(scene.zone("south"))["overall"]
    assert found["zones"]["north"]["without"]["overall"]["accuracy"] == others["accuracy"]  # the sea is empty
    assert (found["zones"]["sea"]["counted"], found["zones"]["sea"]["overall"]["accuracy"]) == (0, None)


def test_files_say_the_same_of_zones(scene, tmp_path, without_pictures):
    du.report(scene, tmp_path / "out")
    found = json.loads((tmp_path / "out/results.json").read_text())
    assert found == du.results(scene)
    rows = {row["zone"]: row for row in csv.DictReader((tmp_path / "out/tables/zones.csv").read_text().splitlines())}
    accuracy = found["zones"]["north"]["overall"]
    low, high = (float(rows["north"][f"overall/accuracy {end}"]) for end in ("low", "high"))
    assert (float(rows["north"]["overall/accuracy"]), [low, high]) == (
        accuracy["accuracy"],
        accuracy["accuracy_interval"],
    )
    by_class = [*csv.DictReader((tmp_path / "out/tables/zones_by_class.csv").read_text().splitlines())]
    assert sum(int(row["reference (pixels)"]) for row in by_class) == found["counted"]
    template = environment("pixel").get_template("zones.html.jinja")
    page = template.render(zones=zones_context(scene, found), results=found)
    assert "48 pixels are in no zone and left out" in page
    assert "{:.3f} to {:.3f}".format(*accuracy["accuracy_interval"]) in page
    du.report(tmp_path / "out")  # from what was saved
    assert json.loads((tmp_path / "out/results.json").read_text()) == found
