"""Tables have the numbers of results.json with every digit, and empty cells for undefined numbers."""

from __future__ import annotations

import csv
from io import StringIO

import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.measures import Measure
from dask_uncert.reports.names import file_names, unit
from dask_uncert.reports.results.cohort import cohort_statistics
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.reports.tables.cohort import cohort_tables
from dask_uncert.reports.tables.csv import as_csv
from dask_uncert.reports.tables.scene import scene_tables
from tests.support.cohorts import reported_cohort

AWKWARD = '<b>&"x"</b>, naïve'
POWER = "geometric(fisher-rao, n=1)"


def read(evaluation):
    """Returns the rows of every table of an evaluation, read from CSV, by name; and its results."""
    results = scene_results(evaluation)
    texts = {name: as_csv(rows) for name, rows in scene_tables(evaluation, results)}
    return {name: list(csv.reader(StringIO(text))) for name, text in texts.items()}, results


@pytest.fixture(scope="module")
def drawn():
    """Three classes; the last never occurs, the second has an awkward name."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet([0.5, 0.5, 0.02], size=(24, 19))
    reference = np.where(rng.random((24, 19)) < 0.8, p[..., :2].argmax(-1), rng.integers(0, 2, (24, 19)))
    reference[0, :7] = 9
    return evaluate(
        p,
        reference,
        classes={0: "grass", 1: AWKWARD, 2: "never"},
        ignore=[9],
        measures=["gini", "homophily", {"geometric": {"distance": "fisher-rao", "n": 1}}],
        class_distances={"table": [[0, 1, 2], [1, 0, 3], [2, 3, 0]]},
        uncertainty_confusion={"measures": ["gini"], "thresholds": [0.25, 0.3333]},
        soft_confusion=[{"class": "grass", "thresholds": [0.5], "sigmas": [0, 0.1], "uncertainty": "gini"}],
    )


@pytest.fixture(scope="module")
def tables(drawn):
    return read(drawn)


def same(texts, values):
    """Returns whether cells have these numbers to the last digit."""
    pairs = zip(texts, values, strict=True)
    return all(text == "" if value is None else float(text) == value for text, value in pairs)


def test_every_table_is_a_rectangle_with_a_header(tables):
    for name, rows in tables[0].items():
        assert len({len(row) for row in rows}) == 1, name
        assert all(rows[0]), name
        assert len(set(rows[0])) == len(rows[0]), name


def test_patients_have_the_columns_of_the_page_and_intervals_stand_beside_their_numbers():
    statistics = cohort_statistics(*reported_cohort(replicates=10))
    tables = cohort_tables(statistics)
    shown = [metric.name for metric in statistics.headline]
    who = ["case", "patient", "visit", "site", "scanner", "status", "reason"]
    header, *rows = tables["patients"]
    assert [*who, "counted (pixels)"] == header[: len(who) + 1]
    assert sorted(header[len(who) + 1 :]) == sorted(shown)
    assert set(header) < set(tables["patients_all"][0])
    assert {row[0]: row[header.index("status")] for row in rows}["P8"] == "failed"
    for name in ("cohort", "groups"):
        header = tables[name][0]
        ends = [f"{key}{end}" for key in ("pooled", "mean") for end in ("", "_low", "_high", "_undefined_replicates")]
        first = header.index("pooled")
        assert header[first : first + len(ends)] == ends
    assert {type(cell) for rows in tables.values() for row in rows for cell in row}.isdisjoint({list, tuple, dict})


def test_overall_and_excluded(tables):
    tables, results = tables
    overall = {row[0]: row[1] for row in tables["overall"]}
    assert same([overall[name] for name in results["overall"]], results["overall"].values())
    assert same([overall["ece"]], [results["calibration"]["ece"]])
    assert (overall["total"], overall["excluded"]) == (str(24 * 19), "7")
    assert ["excluded", "ignored", "7"] in tables["excluded"]


def test_classes_and_confusion(tables):
    tables, results = tables
    header, *rows = tables["classes"]
    for row, values in zip(rows, results["classes"], strict=True):
        texts = {key.removesuffix(" (pixels)"): text for key, text in zip(header, row, strict=True)}
        assert texts.pop("name") == values["name"]
        assert same(texts.values(), [values[key] for key in texts])
    assert rows[2][header.index("recall")] == ""
    header, *rows = tables["confusion"]
    assert header[1:] == ["grass", AWKWARD, "never"] == [row[0] for row in rows]
    assert [[int(n) for n in row[1:]] for row in rows] == results["confusion"]


def test_measures_and_their_full_ecdf(drawn, tables):
    tables, results = tables
    for name, _, outcome, *numbers in tables["measures"][1:]:
        expected = results["measures"][name][outcome]
        moments = [expected[key] for key in ("n", "mean", "std", "skewness")]
        assert same(numbers, [*moments, *expected["quantiles"].values()])
    for name, safe in file_names(drawn.measures).items():
        header, *rows = tables[f"ecdf_{safe}"]
        assert header[0] == "value (1)"
        assert same([row[0] for row in rows], drawn.measures[name].edges[1:])
        right, wrong, both = (int(n) for n in rows[-1][1:4])
        assert right + wrong == both == results["counted"]
        assert rows[-1][4:] == ["1.0", "1.0", "1.0"]
        ecdf = results["measures"][name]["ecdf"]
        shares = {float(row[0]): float(row[6]) for row in rows}
        assert [shares[value] for value in ecdf["at"]] == ecdf["all"]


def test_long_tables(tables):
    tables, results = tables
    for name, _, *numbers in tables["uncertainty_confusion"][1:]:
        row = next(r for r in results["uncertainty_confusion"][name] if r["threshold"] == float(numbers[0]))
        assert same(numbers, row.values())
    assert len(tables["uncertainty_confusion"]) == 3
    header, *rows = tables["soft_confusion"]
    for row, values in zip(rows, results["soft_confusion"], strict=True):
        cells = dict(zip(header, row, strict=True))
        keys = ("sigma", "f1", "false_positive_rate")
        assert same([cells["TP (weighted pixels)"], *map(cells.get, keys)], map(values.get, ("TP", *keys)))
    for row, values in zip(tables["calibration"][1:], results["calibration"]["bins"], strict=True):
        assert same(row, values.values())
    spreads = {(*row[:4], row[5]): row[6:] for row in tables["by_class"][1:]}
    expected = results["by_class"][1]["measures"][POWER]["wrong"]
    assert same(spreads["reference", "1", AWKWARD, POWER, "wrong"], expected.values())
    assert len(spreads) == 2 * 3 * 3 * 3
    assert [row[1:4] for row in tables["class_distances"][1:]] == [
        [repr(float(v)) for v in row] for row in ([0, 1, 2], [1, 0, 3], [2, 3, 0])
    ]


def test_without_measures_or_pixels():
    nothing, _ = read(evaluate(np.full((2, 3, 2), 0.5), np.full((2, 3), 7), ignore=[7], measures=[]))
    assert "ecdf" not in " ".join(nothing)
    assert dict(row[:2] for row in nothing["overall"])["accuracy"] == ""
    assert len(nothing["class_distances"]) == 1
    some, _ = read(evaluate(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]), measures=[]))
    assert ["1", "", "", "wrong", "1", "", ""] in some["by_confused_classes"]


def test_file_names_are_safe_and_unique():
    names = [POWER, "geometric(fisher-rao, n_1)", "../../etc", "", "é", "RENYI(2)", "renyi(2)", "x" * 300]
    files = file_names(names)
    assert list(files) == names
    assert len({safe.lower() for safe in files.values()}) == len(names)
    assert all(safe and safe.strip(".") == safe and "/" not in safe for safe in files.values())
    assert max(map(len, files.values())) <= 110


def test_units_of_measures():
    assert unit(Measure("m", "mutual_information")) == "nat"
    assert unit(Measure("v", "variation_ratio")) == unit(Measure("gini", "geometric")) == "1"


def test_no_name_starts_a_formula():
    p = np.random.default_rng(3).dirichlet([1, 1], size=(4, 5))
    tables, _ = read(evaluate(p, np.zeros((4, 5), int), classes={0: "=1+1", 1: "@b"}, measures=[]))
    cells = {cell for rows in tables.values() for row in rows for cell in row}
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]


def test_no_cell_is_a_list_and_intervals_stand_beside_their_numbers():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(2), (16, 16)), rng.integers(0, 2, (16, 16))
    p[:3, :3] = np.nan  # lost pixels give bounds
    settings = {"confidence": {"size": 4, "replicates": 30}}
    tables, results = read(evaluate(p, y, classes=["a", "b"], measures=["gini"], **settings))
    assert not [cell for rows in tables.values() for row in rows for cell in row if cell.startswith("[")]
    header, *rows = tables["overall"]
    assert header == ["number", "value", "low", "high", "unit"]
    overall = {row[0]: row[1:] for row in rows}
    accuracy = [results["overall"]["accuracy"], *results["overall"]["accuracy_interval"]]
    assert same(overall["accuracy"][:3], accuracy)
    assert same([overall[f"accuracy {end}"][0] for end in ("lowest", "highest")], results["overall"]["accuracy_bounds"])
    assert same(overall["ece"][1:3], results["calibration"]["ece_interval"])
    assert same(overall["brier_score"][1:3], results["calibration"]["brier"]["score_interval"])
    assert same(overall["nll"][1:3], results["calibration"]["nll"]["value_interval"])
    assert overall["counted"][1:3] == ["", ""]
    header, *rows = tables["classes"]
    ends = [row[header.index("f1 low") : header.index("f1 high") + 1] for row in rows]
    assert header.index("f1 low") == header.index("f1") + 1
    assert all(same(pair, c["f1_interval"]) for pair, c in zip(ends, results["classes"], strict=True))
    bounds = [[row[header.index(f"f1 {end}")] for end in ("lowest", "highest")] for row in rows]
    assert all(same(pair, c["f1_bounds"]) for pair, c in zip(bounds, results["classes"], strict=True))
