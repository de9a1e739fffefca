"""The page, the figures and the schema: complete, self-contained, escaped, and the same bytes every time."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.reports.figures.layout import png
from dask_uncert.reports.figures.maps import picture
from dask_uncert.reports.page import bokeh_charts
from dask_uncert.reports.page.charts import chart_texts
from dask_uncert.reports.page.scene import FIGURES, MOST_BYTES
from dask_uncert.reports.page.templates import common_context, environment
from dask_uncert.reports.results.scene import scene_results, to_json
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.reports.tables.scene import scene_tables
from dask_uncert.reports.write import write_all
from tests.support.pages import Page, write_page

AWKWARD = '<b>&"x"</b> $a_1$'


def drawn(accuracy=0.75, **options):
    rng = np.random.default_rng(11)
    p = np.concatenate([rng.dirichlet([0.6, 0.6], size=(16, 21)), np.zeros((16, 21, 1))], axis=-1)
    decided = p.argmax(-1)
    reference = np.where(rng.random((16, 21)) < accuracy, decided, 1 - decided)
    settings = {"classes": {1: "grass", 2: AWKWARD, 3: "never"}, "measures": ["gini", "entropy"], **options}
    return evaluate(p, reference + 1, **settings)


FULL = {
    "measures": ["gini", "homophily"],
    "class_distances": {"table": [[0, 1, 2], [1, 0, 3], [2, 3, 0]]},
    "soft_confusion": [{"class": "grass", "thresholds": [0.5], "sigmas": [0.1], "uncertainty": "gini"}],
    "uncertainty_confusion": {"measures": ["gini"], "thresholds": [0.25, 0.999]},
    "joint_distributions": ["gini"],
}
ABOUT = {"title": "Tést & <title>", "Job": "job.yaml", "Inputs": "a <store>\nb"}


def some_maps():
    values = np.linspace(0, 1, 16 * 21).reshape(16, 21)
    values[3] = np.nan
    return {"gini": (values, ("y", "x")), "predicted": (np.where(values > 0.5, 2.0, 1.0), ("y", "x"))}


@pytest.fixture(scope="module")
def written_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    evaluation = drawn(**FULL)
    return evaluation, folder, write_all(evaluation, folder, some_maps(), ABOUT)


@pytest.mark.slow
def test_write_all_writes_the_same_bytes_again(written_page, tmp_path):
    evaluation, folder, written = written_page
    assert sorted(written) == sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    everything = write_all(evaluation, tmp_path, some_maps(), ABOUT, all_figures=True)
    drawn = {name for name in written if name.startswith("figures/")}
    shown = {*FIGURES, "map_gini", "map_predicted"}
    assert drawn == {f"figures/{name}.{'png' if name.startswith('map_') else 'svg'}" for name in shown}
    assert {f"figures/{name}.{kind}" for name in shown for kind in ("png", "svg")} <= set(everything)
    assert {f"figures/{name}.png" for name in ("ecdf", "confusion", "soft_weights")} <= set(everything) - set(written)
    for name in written:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_page_is_well_formed_and_needs_no_other_file(written_page):
    _, folder, _ = written_page
    page = Page(folder / "report.html")
    assert len(page.source.encode()) <= MOST_BYTES
    assert not {"iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    for tag, attrs in page.tags:
        for source in (attrs.get("src"), attrs.get("href")):
            allowed = ("data:", "#", "https://doi.org/") if tag == "a" else ("data:",)
            assert source is None or source.startswith(allowed), (tag, source[:80])
    style = re.search(r"<style>(.*?)</style>", page.source, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    for source in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page.source):
        for node in ElementTree.fromstring(base64.b64decode(source)).iter():
            links = [v for k, v in node.attrib.items() if k.endswith("href")]
            assert all(link.startswith(("#", "data:")) for link in links)


def test_the_page_is_accessible(written_page):
    _, folder, _ = written_page
    page = Page(folder / "report.html")
    names = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    assert names.count("h1") == names.count("main") == 1
    assert names.count("table") == names.count("caption") > 5
    alternatives = [attrs.get("alt") for tag, attrs in page.tags if tag == "img"]
    assert all(alternatives)
    values = some_maps()["gini"][0]
    assert f"Map of Gini: from 0 to 1, mean {np.nanmean(values):.3g}" in alternatives
    assert f"Map of Predicted class: grass 50.0 %, {AWKWARD} 50.0 %" in alternatives
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")
    labelled = {attrs.get("for") for tag, attrs in page.tags if tag == "label"}
    controls = [attrs for tag, attrs in page.tags if tag in ("input", "select")]
    assert len(controls) == 14
    assert all(attrs["id"] in labelled or attrs.get("aria-label") for attrs in controls)
    assert all(attrs.get("aria-describedby", "t-hint") in page.ids for attrs in controls)


def test_what_a_person_asks_comes_first_and_the_explorer_after_it(written_page):
    ids = Page(written_page[1] / "report.html").ids
    asked = [
        "advice",
        "maps",
        "classes",
        "confusion",
        "threshold",
        "measures",
        "calibration",
        "uncertainty-confusion",
        "excluded",
    ]
    order = [*asked, "explorer", "soft-confusion", "class-distances", "provenance"]
    assert [name for name in ids if name in order] == order


def test_only_the_words_of_the_page_itself_are_put_in_voxels():
    p = [[[[0.9, 0.1], [0.2, 0.8]]]]
    results = scene_results(evaluate(p, [[[0, 5]]], classes=["pixels", "b"], ignore=[5]))
    context = common_context(results, {}, "pixels", "voxel")
    text = environment("voxel").get_template("ledger.html.jinja").render(context)
    assert "Counted and excluded voxels" in text
    assert text.count("pixel") == text.count(">pixels</th>") == 1  # the name of a class


def test_names_are_escaped_and_undefined_is_a_dash(written_page):
    _, folder, _ = written_page
    page = Page(folder / "report.html")
    assert "<b>&" not in page.source
    assert page.source.count(html.escape(AWKWARD).replace("&quot;", "&#34;")) > 3
    assert AWKWARD in page.text
    assert "Tést & <title>" in page.text
    assert "a <store>\nb" in page.text
    cells = [part for part in page.text if part.strip()]
    first = cells.index("never")
    assert cells[first : first + 9] == ["never", "3", "0", "0", "–", "–", "–", "–", "0.0000"]


def test_the_page_has_the_numbers_of_results(written_page):
    evaluation, folder, _ = written_page
    expected = scene_results(evaluation)
    assert json.loads((folder / "results.json").read_text(encoding="utf-8")) == expected
    text = " ".join(Page(folder / "report.html").text)
    numbers = [expected["overall"]["accuracy"], expected["overall"]["kappa"], expected["calibration"]["ece"]]
    numbers += [outcomes["wrong"]["mean"] for outcomes in expected["measures"].values()]
    assert all(f"{number:.4f}" in text for number in numbers)


def test_svg_figures_are_well_formed_and_have_no_date(written_page):
    _, folder, _ = written_page
    for path in (folder / "figures").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert b"<dc:date>" not in path.read_bytes()


@pytest.mark.parametrize("name", ["correct", "confused_classes", "of no measure"])
@pytest.mark.parametrize("values", [np.eye(2, 5), np.full((3, 1), np.nan)])
def test_maps_of_every_kind_can_be_drawn(name, values):
    figure = picture(drawn(measures=[]), name, values, ("z", "x"))
    assert figure.axes[0].get_ylabel() == "z (pixels)"
    assert png(figure).startswith(b"\x89PNG")


ABSENT = {"soft-confusion", "class-distances", "maps", "provenance"}
EMPTY = {
    "no measures": ({"measures": []}, {"measures", "uncertainty-confusion"}),
    "nothing wrong": (
        {"accuracy": 1.0, "measures": ["gini"], "uncertainty_confusion": {"measures": []}},
        {"uncertainty-confusion"},
    ),
    "nothing counted": (
        {"ignore": [1, 2], "classes": {3: "never", 4: "no", 5: "none"}, "measures": ["gini"]},
        set(),
    ),
}


@pytest.mark.parametrize(("options", "absent"), EMPTY.values(), ids=EMPTY)
def test_empty_parts_are_left_out_or_undefined(options, absent, tmp_path):
    evaluation = drawn(**options)
    expected = scene_results(evaluation)
    jsonschema.Draft202012Validator(results_schema()).validate(expected)
    assert dict(scene_tables(evaluation, expected))
    write_page(evaluation, tmp_path / "report.html", results=expected)
    page = Page(tmp_path / "report.html")
    assert not {*page.ids} & (ABSENT | absent)
    assert {"excluded", "classes", "confusion", "calibration"} <= {*page.ids}
    assert "nan" not in " ".join(page.text).split()
    assert "None" not in " ".join(page.text).split()


def test_many_classes_become_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr("dask_uncert.reports.page.scene.MOST_CLASSES", 2)
    evaluation = drawn(measures=[])
    write_page(evaluation, tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    assert "tables/confusion.csv" in page.source
    assert 'class="matrix"' not in page.source


def test_intervals_and_failed_cases_are_shown(tmp_path):
    evaluation = drawn(measures=["gini"])
    expected = scene_results(evaluation)
    expected["overall"]["accuracy_interval"] = [0.7125, 0.7875]
    expected["classes"][0]["f1_interval"] = [0.6125, None]
    expected["selective"]["gini"]["aurc_interval"] = [0.1125, 0.1875]
    expected |= {"confidence": {"level": 0.9}, "failed": [{"case": "p<7>", "reason": "not found"}]}
    expected["cohort"] = {"cases": 12, "patients": 7, "groups": {}}
    write_page(evaluation, tmp_path / "report.html", results=expected)
    text = " ".join(Page(tmp_path / "report.html").text)
    intervals = ("0.7125 to 0.7875", "0.613 to –", "0.1125 to 0.1875", "90 % confidence intervals")
    for shown in (*intervals, "p<7>", "12 cases of 7 patients"):
        assert shown in text, shown


@pytest.mark.slow
def test_charts_are_the_same_bytes_in_every_process():
    code = "from dask_uncert.reports.page.bokeh_charts import charts; print(charts())"
    texts = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_charts_are_kept_for_the_next_page_unless_damaged(tmp_path, monkeypatch):
    made = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(bokeh_charts, "bokeh_script", lambda: made.append(1) or "script")
    first = chart_texts()
    assert chart_texts() == first
    assert len(made) == 1
    (file,) = (tmp_path / "dask-uncert").iterdir()
    file.write_text(file.read_text().replace('"script"', '"changed"', 1))
    assert chart_texts() == first
    assert len(made) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", str(file / "no folder"))
    assert chart_texts() == first
    assert len(made) == 3


def test_the_schema_describes_every_key():
    schema = results_schema()
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    evaluation = drawn(**FULL)
    expected = json.loads(to_json(scene_results(evaluation)))
    validator.validate(expected)
    joint, (_, *rows) = (
        expected["joint_distributions"]["gini"],
        dict(scene_tables(evaluation, expected))["joint_distributions"],
    )
    for outcome, column in (("correct", -2), ("wrong", -1)):
        counted = expected["measures"]["gini"][outcome]["n"]
        assert np.sum(joint[outcome]) == sum(row[column] for row in rows) == counted > 0

    def described(node, path):
        for key, value in node.get("properties", {}).items():
            if "const" not in value:
                assert value.get("description"), (path, key)
            described(value, (*path, key))
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), dict):
                described(node[key], (*path, key))

    described(schema, ())
    for name, node in schema["$defs"].items():
        described(node, (name,))
    expected["overall"]["accuracy_interval"] = [0.7, 0.8]
    validator.validate(expected)
    for wrong in ({"new": 1}, {"counted": -1}, {"confusion": [[0.5]]}, {"overall": {}}):
        assert not validator.is_valid({**expected, **wrong}), wrong


def test_results_need_no_matplotlib():
    code = (
        "import sys; from dask_uncert.reports.results import cohort, regression, scene;"
        "print('matplotlib' in sys.modules or 'jinja2' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
