"""Tables hold the numbers of results.json, every digit, and nothing where a number is undefined."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.measures import Measure
from dask_uncert.reports.names import file_names, unit
from dask_uncert.reports.results.scene import results
from dask_uncert.reports.tables.scene import tables, write_tables

AWKWARD = '<b>&"x"</b>, naïve'
POWER = "geometric(fisher-rao, n=1)"


@pytest.fixture(scope="module")
def drawn():
    """Three classes, of which the last never occurs and the second is named awkwardly."""
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
def folder(drawn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(drawn, folder)
    return folder


def read(folder, name):
    with open(folder / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def same(text, value):
    return text == "" if value is None else float(text) == value


def test_every_table_is_a_rectangle_with_a_header(drawn, tmp_path):
    names = write_tables(drawn, tmp_path)
    assert names == [f"{name}.csv" for name, _ in tables(drawn, results(drawn))]
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        rows = read(tmp_path, name.removesuffix(".csv"))
        assert len({len(row) for row in rows}) == 1, name
        assert all(rows[0]), name
        assert len(set(rows[0])) == len(rows[0]), name


def test_overall_and_excluded(drawn, folder):
    found = results(drawn)
    overall = {row[0]: row[1] for row in read(folder, "overall")}
    for name, value in found["overall"].items():
        assert same(overall[name], value), name
    assert same(overall["ece"], found["calibration"]["ece"])
    assert (overall["total"], overall["excluded"]) == (str(24 * 19), "7")
    assert ["excluded", "ignored", "7"] in read(folder, "excluded")


def test_classes_and_confusion(drawn, folder):
    found = results(drawn)
    header, *rows = read(folder, "classes")
    keys = [name.removesuffix(" (pixels)") for name in header]
    for row, one in zip(rows, found["classes"], strict=True):
        for key, text in zip(keys, row, strict=True):
            assert text == one[key] if key == "name" else same(text, one[key]), key
    assert rows[2][keys.index("recall")] == ""
    header, *rows = read(folder, "confusion")
    assert header[1:] == ["grass", AWKWARD, "never"] == [row[0] for row in rows]
    assert [[int(n) for n in row[1:]] for row in rows] == found["confusion"]


def test_measures_and_their_full_ecdf(drawn, folder):
    found = results(drawn)
    for name, _, outcome, n, mean, std, skewness, *quantiles in read(folder, "measures")[1:]:
        of = found["measures"][name][outcome]
        assert int(n) == of["n"]
        assert all(
            same(*pair)
            for pair in zip((mean, std, skewness), (of["mean"], of["std"], of["skewness"]), strict=True)
        )
        assert all(same(*pair) for pair in zip(quantiles, of["quantiles"].values(), strict=True))
    for name, safe in file_names(drawn.measures).items():
        header, *rows = read(folder, f"ecdf_{safe}")
        assert header[0] == "value (1)"
        assert [float(row[0]) for row in rows] == list(drawn.measures[name].edges[1:])
        right, wrong, both = (int(n) for n in rows[-1][1:4])
        assert right + wrong == both == found["counted"]
        assert rows[-1][4:] == ["1.0", "1.0", "1.0"]
        at = found["measures"][name]["ecdf"]
        shares = {float(row[0]): float(row[6]) for row in rows}
        assert [shares[value] for value in at["at"]] == at["all"]


def test_long_tables(drawn, folder):
    found = results(drawn)
    for name, _, tau, *numbers in read(folder, "uncertainty_confusion")[1:]:
        row = next(r for r in found["uncertainty_confusion"][name] if r["threshold"] == float(tau))
        assert all(same(*pair) for pair in zip(numbers, list(row.values())[1:], strict=True))
    assert len(read(folder, "uncertainty_confusion")) == 3
    header, *rows = read(folder, "soft_confusion")
    for row, one in zip(rows, found["soft_confusion"], strict=True):
        cells = dict(zip(header, row, strict=True))
        assert same(cells["TP (weighted pixels)"], one["TP"])
        assert all(same(cells[key], one[key]) for key in ("sigma", "f1", "false_positive_rate"))
    for row, one in zip(read(folder, "calibration")[1:], found["calibration"]["bins"], strict=True):
        assert all(same(*pair) for pair in zip(row, one.values(), strict=True))
    spreads = {(*row[:4], row[5]): row[6:] for row in read(folder, "by_class")[1:]}
    of = found["by_class"][1]["measures"][POWER]["wrong"]
    assert all(
        same(*pair)
        for pair in zip(spreads["reference", "1", AWKWARD, POWER, "wrong"], of.values(), strict=True)
    )
    assert len(spreads) == 2 * 3 * 3 * 3
    assert [row[1:4] for row in read(folder, "class_distances")[1:]] == [
        [repr(float(v)) for v in row] for row in ([0, 1, 2], [1, 0, 3], [2, 3, 0])
    ]


def test_without_measures_or_pixels(tmp_path):
    nothing = evaluate(np.full((2, 3, 2), 0.5), np.full((2, 3), 7), ignore=[7], measures=[])
    assert "ecdf" not in " ".join(write_tables(nothing, tmp_path))
    assert dict(row[:2] for row in read(tmp_path, "overall"))["accuracy"] == ""
    assert len(read(tmp_path, "class_distances")) == 1
    some = evaluate(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]), measures=[])
    write_tables(some, tmp_path)
    assert ["1", "", "", "wrong", "1", "", ""] in read(tmp_path, "by_confused_classes")


def test_file_names_are_safe_and_apart():
    names = [POWER, "geometric(fisher-rao, n_1)", "../../etc", "", "é", "RENYI(2)", "renyi(2)", "x" * 300]
    found = file_names(names)
    assert list(found) == names
    assert len({safe.lower() for safe in found.values()}) == len(names)
    assert all(safe and safe.strip(".") == safe and "/" not in safe for safe in found.values())
    assert max(map(len, found.values())) <= 110


def test_units_of_measures():
    assert unit(Measure("m", "mutual_information")) == "nat"
    assert unit(Measure("v", "variation_ratio")) == unit(Measure("gini", "geometric")) == "1"
