"""The report of a cohort: results, tables, figures, and its page with and without a script."""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import replace
from io import BytesIO

import jsonschema
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.metrics.scalars import scalars
from dask_uncert.reports import pictures
from dask_uncert.reports.figures import cohort as cohort_figure
from dask_uncert.reports.figures import thumbnails
from dask_uncert.reports.figures.cohort_strips import whole_strips
from dask_uncert.reports.figures.layout import png
from dask_uncert.reports.figures.maps import UNDEFINED
from dask_uncert.reports.figures.registry import figures
from dask_uncert.reports.figures.style import BLUE, VERMILION
from dask_uncert.reports.page.scene import page_figures
from dask_uncert.reports.results.cohort import best_first, cohort_results, cohort_statistics
from dask_uncert.reports.results.headline import headline
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.reports.write import write_all
from tests.support import cohorts
from tests.support.pages import Page, resize, write_page

F1 = "classes/it's <b>&/f1"
COHORT_FIGURES = ("cohort_strips", "cohort_groups", "comparison")


@pytest.fixture(scope="module")
def reported():
    cohort, evaluation = cohorts.reported_cohort(replicates=15)
    return cohort_statistics(cohort, evaluation), evaluation


@pytest.fixture(scope="module")
def written_cohort(reported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    statistics, evaluation = reported

    def of_cohorts(evaluation, maps, only, *more):  # all others: tests/reports/figures
        return figures(evaluation, maps, {*page_figures(evaluation, maps), *COHORT_FIGURES}, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "figures", of_cohorts)
        return folder, write_all(
            evaluation, folder, about={"manifest": "cases.csv"}, cohort=statistics.cohort, all_figures=True
        )


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_results_match_the_schema_exactly(written_cohort):
    folder, written = written_cohort
    assert sorted(written) == sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(results_schema())
    validator.validate(results)
    assert set(results["cohort"]["headline"]) <= set(results["cohort"]["metrics"])
    assert results["failed"] == [{"case": "P8", "reason": "no store at <here>"}]
    for key in ("cohort", "comparison", "confidence"):
        assert not validator.is_valid({**results, key: {**results[key], "new": 1}})
    f1 = results["cohort"]["metrics"][F1]
    assert (f1["n"], f1["undefined"]) == (6, 1)
    assert f1["pooled_interval"] == results["classes"][1]["f1_interval"]
    assert set(results["comparison"]["metrics"]) == set(results["cohort"]["headline"])


def test_tables_of_patients_and_groups(written_cohort, reported):
    folder, _ = written_cohort
    statistics, _ = reported
    rows = {row["case"]: row for row in rows_of(folder / "tables" / "patients_all.csv")}
    assert list(rows) == sorted([*statistics.cohort.stack.names, "P8"])
    failed = {"status": "failed", "reason": "no store at <here>", "site": "Oslo"}
    assert failed.items() <= rows["P8"].items()
    for case, evaluation in statistics.cohort.stack.evaluations():
        row, read = rows[case.name], scalars(evaluation)
        assert (row["patient"], row["visit"], row["status"]) == (case.patient, case.visit, "evaluated")
        assert int(row["counted (pixels)"]) == evaluation.ledger.counted
        for name, value in read.items():
            assert row[name] == ("" if np.isnan(value) else repr(float(value)))
    groups = rows_of(folder / "tables" / "groups.csv")
    assert len(groups) == (2 + 3) * len(statistics.whole.metrics)
    with_ends = {row["metric"] for row in groups if row["mean_low"]}
    assert with_ends <= {metric.name for metric in statistics.headline}
    assert "overall/accuracy" in with_ends
    assert {row["n"] for row in rows_of(folder / "tables" / "comparison.csv")} <= {"6", "7"}


def test_columns_with_many_values_are_only_in_the_table(reported, monkeypatch):
    statistics, evaluation = reported
    monkeypatch.setattr("dask_uncert.reports.results.cohort.MOST_GROUPS", 2)
    fewer = cohort_statistics(replace(statistics.cohort, confidence=None, against=None), evaluation)
    assert set(fewer.groups) == {"site", "scanner"}
    assert set(fewer.shown) == {"site"}


def test_one_patient_has_no_intervals(reported, tmp_path):
    statistics, _ = reported
    alone = replace(statistics.cohort, stack=statistics.cohort.stack.select(["P2"]), failed={}, against=None)
    evaluation = alone.stack.total()
    statistics = cohort_statistics(alone, evaluation)
    results = cohort_results(evaluation, statistics)
    jsonschema.validate(json.loads(json.dumps(results)), results_schema())
    assert "confidence" not in results
    assert "_interval" not in json.dumps(results)
    write_page(evaluation, tmp_path / "report.html", results=results, statistics=statistics)
    assert "only one patient" in Page(tmp_path / "report.html").source


def test_cases_are_sorted_from_the_worst(reported):
    statistics, _ = reported
    by = {metric.name: metric for metric in statistics.headline}
    f1, ece = (
        np.array(statistics.table[name])[best_first(by[name], statistics.table[name])]
        for name in (F1, "calibration/ece")
    )
    assert np.isnan(f1[-1])
    assert (np.diff(f1[:-1]) >= 0).all()
    assert (np.diff(ece) <= 0).all()


@pytest.mark.parametrize("number", [2, 3, 12])
def test_headline_metrics_are_scalars(number):
    p = np.random.default_rng(number).dirichlet(np.ones(number), 30)
    classes = {i: f"class {i}" for i in range(number)}
    soft = [
        {"class": f"class {i}", "sigmas": [0, 0.1], "dampings": [0, 2], "uncertainty": "gini", "sweep": False}
        for i in range(number)
    ]
    evaluation = evaluate(p, p.argmax(-1), classes=classes, measures=["gini", "entropy"], soft_confusion=soft)
    metrics = headline(evaluation)
    known = scalars(evaluation)
    assert {metric.name for metric in metrics} <= set(known)
    assert len({metric.name for metric in metrics}) == len(metrics)
    assert len({metric.label for metric in metrics}) == len(metrics)
    softs = [metric for metric in metrics if metric.name.startswith("soft_confusion/")]
    assert len(softs) == min(number, 10)
    assert all(metric.detail == "t 0.5, σ 0.1, d 0" for metric in softs)
    dice = [metric for metric in metrics if re.fullmatch("classes/.*/f1", metric.name)]
    assert len(dice) == {2: 1, 3: 3, 12: 0}[number]


def test_the_page_shows_every_case_by_name_without_its_script(written_cohort, reported):
    folder, _ = written_cohort
    statistics, _ = reported
    page = Page(folder / "report.html")
    text = page.source
    assert {"patients", "groups", "cases", "comparison", "enlarged", "excluded"} <= set(page.ids)
    assert page.ids.index("patients") < page.ids.index("explorer")
    assert "<i>" not in text.replace("<i>σ", "").replace("<i>t", "").replace("<i>d", "").replace("<i>τ", "")
    strips = text[text.index('id="patients"') : text.index('id="groups"')].split('<div class="plot"')[1:]
    assert len(strips) == len(statistics.headline)
    for piece, (metric, strip_) in zip(strips, whole_strips(statistics), strict=True):
        titles = [html.unescape(title) for title in re.findall(r"<title>(.*?)</title>", piece)]
        names = statistics.cohort.stack.names
        wanted = {n: v for n, v in zip(names, statistics.table[metric.name], strict=True) if v == v}
        assert titles == [f"{names[dot.case]}: {dot.value:.4f}" for dot in strip_.dots]
        assert {line.rsplit(": ", 1)[0] for line in titles} == set(wanted)
    shown = " ".join(page.text)
    assert "1 case failed" in shown
    numbers = json.loads((folder / "results.json").read_text())["cohort"]["metrics"]
    means = [numbers[metric.name]["mean"] for metric in statistics.headline]
    assert all(f"{mean:.4f}" in shown for mean in means if mean is not None)
    rows = re.findall(r'<tr id="case-(\d+)"', text)
    assert [int(row) for row in rows] == best_first(statistics.headline[0], statistics.table[F1]).tolist()
    alternatives = [attrs["alt"] for tag, attrs in page.tags if tag == "img"]
    assert sum(text.startswith("Gini of") for text in alternatives) == len(statistics.cohort.stack)
    groups = [attrs for _, attrs in page.tags if "data-group-metric" in attrs]
    assert all(("hidden" in attrs) == (attrs["data-group-metric"] != "0") for attrs in groups)


def test_figures_are_drawn_and_the_same_again(written_cohort, reported):
    folder, written = written_cohort
    statistics, _ = reported
    for name in COHORT_FIGURES:
        assert {f"figures/{name}.png", f"figures/{name}.svg"} <= set(written)
    figure = cohort_figure.cohort_strips(statistics)
    for axes, (metric, strip_) in zip(figure.axes, whole_strips(statistics), strict=True):
        dots = axes.collections[0 if strip_.quantiles is None else 1].get_offsets()
        assert sorted(dots[:, 0]) == sorted(v for v in statistics.table[metric.name] if v == v)
    assert png(figure) == (folder / "figures" / "cohort_strips.png").read_bytes()
    bare = replace(statistics, shown={})
    assert cohort_figure.cohort_groups(bare) is None


def test_thumbnails_are_not_scaled_and_have_the_colours_of_the_legend(reported):
    _, evaluation = reported
    right = np.array([[1.0, 0.0], [np.nan, 1.0]])
    shown = imread(BytesIO(thumbnails.thumbnail(evaluation, "correct", right)))[..., :3]
    wanted = [[to_rgb(BLUE), to_rgb(VERMILION)], [to_rgb(UNDEFINED), to_rgb(BLUE)]]
    np.testing.assert_allclose(shown, wanted, atol=1 / 255)
    legend = thumbnails.legend(evaluation, "correct", right)
    assert legend.levels == [("correct", BLUE.lower()), ("wrong", VERMILION.lower())]
    ramp = thumbnails.legend(evaluation, "gini", right)
    ends = imread(BytesIO(thumbnails.thumbnail(evaluation, "gini", np.array([[0.0, 1.0]]))))[0, :, :3]
    np.testing.assert_allclose(ends, [to_rgb(ramp.ramp[0]), to_rgb(ramp.ramp[-1])], atol=1 / 255)
    assert ramp.ends == ("0", "1")
    picture = np.arange(12, dtype="uint8").reshape(2, 2, 3)
    same = imread(BytesIO(thumbnails.thumbnail(evaluation, "soft_lesion", picture)))[..., :3]
    np.testing.assert_array_equal(np.rint(same * 255), picture)


# ---- the page in a browser without network


@pytest.fixture
def page(browser, written_cohort):
    def open_it(width=1280):
        resize(browser, width)
        browser.get((written_cohort[0] / "report.html").as_uri())

    return open_it


def select_all(browser, selector):
    return browser.find_elements("css selector", selector)


def highlighted(browser):
    """Returns the label of each strip and the position of its highlighted dot."""
    return browser.execute_script(
        """return [...document.querySelectorAll(".plot")].map((plot) => {
          const ring = plot.querySelector(".ring");
          return [plot.dataset.label, ring && ring.style.display !== "none" ? ring.getAttribute("cx") : null];
        });"""
    )


def test_arrow_keys_show_each_case_and_highlight_it_in_every_strip(browser, page, reported):
    from selenium.webdriver.common.keys import Keys

    statistics, _ = reported
    page()
    (metric, first), names = next(iter(whole_strips(statistics))), statistics.cohort.stack.names
    plot = select_all(browser, ".strips .plot")[0]
    assert plot.accessible_name == metric.label
    plot.send_keys(Keys.HOME)
    for i in (0, 1, 2):
        dot = first.dots[i]
        text = f"{names[dot.case]}: {dot.value:.4f}, {i + 1} of {len(first.dots)}"
        assert plot.get_attribute("aria-valuetext") == text
        assert select_all(browser, ".tip")[0].text.split() == [*names[dot.case].split(), f"{dot.value:.4f}"]
        seen = dict(highlighted(browser))
        for other, strip_ in whole_strips(statistics):
            positions = [f"{d.x}%" for d in strip_.dots if d.case == dot.case]
            assert [seen[other.label]] == (positions or [None])
        plot.send_keys(Keys.ARROW_RIGHT)
    plot.send_keys(Keys.END, Keys.ARROW_RIGHT)
    assert plot.get_attribute("aria-valuenow") == str(len(first.dots))
    plot.send_keys(Keys.ENTER)
    (row,) = select_all(browser, "tr.picked")
    assert row.get_attribute("id") == f"case-{first.dots[-1].case}"
    plot.send_keys(Keys.ESCAPE)
    assert not select_all(browser, ".tip")[0].is_displayed()
    assert all(position is None for _, position in highlighted(browser))


def test_pointing_at_a_dot_shows_its_case(browser, page, reported):
    from selenium.webdriver.common.action_chains import ActionChains

    statistics, _ = reported
    page()
    dot = select_all(browser, ".strips .plot .dots circle")[0]
    ActionChains(browser).move_to_element(dot).perform()
    name = statistics.cohort.stack.names[int(dot.get_attribute("data-i"))]
    assert select_all(browser, ".tip")[0].text.startswith(name)


def test_groups_are_shown_by_the_chosen_metric(browser, page, reported):
    from selenium.webdriver.support.select import Select

    statistics, _ = reported
    page()
    choice = Select(browser.find_element("id", "group-metric"))
    assert [element.text for element in choice.options] == [metric.label for metric in statistics.headline]
    for i in (0, 3):
        choice.select_by_index(i)
        shown = [element for element in select_all(browser, ".grouped") if element.is_displayed()]
        assert len(shown) == len(statistics.shown)
        assert all(element.text.startswith(statistics.headline[i].label) for element in shown)


def test_the_table_of_cases_sorts_and_pictures_enlarge(browser, page, reported):
    from selenium.webdriver.common.keys import Keys

    statistics, _ = reported
    page()
    table = browser.find_element("css selector", "#cases table")
    heads = table.find_elements("css selector", "thead th")
    head = next(element for element in heads if element.text.startswith("ECE"))
    head.find_element("tag name", "button").send_keys(Keys.ENTER)
    rows = table.find_elements("css selector", "tbody tr")
    order = [int(element.get_attribute("data-i")) for element in rows]
    ece = next(metric for metric in statistics.headline if metric.short == "ECE")
    assert order == best_first(ece, statistics.table[ece.name]).tolist()
    select_all(browser, ".pictures button.thumb")[0].send_keys(Keys.ENTER)
    dialog = browser.find_element("id", "enlarged")
    assert dialog.is_displayed()
    worst = statistics.cohort.stack.names[best_first(statistics.headline[0], statistics.table[F1])[0]]
    assert dialog.find_element("tag name", "figcaption").text == f"{worst}: Gini, y × x"


def test_prints_have_strips_and_no_help(browser, page):
    page()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    help_texts = select_all(browser, "[data-strip-help], [data-group-choice]")
    assert not any(element.is_displayed() for element in help_texts)
    assert all(element.is_displayed() for element in select_all(browser, ".strips .plot svg"))
    assert select_all(browser, ".tall")[0].value_of_css_property("overflow-y") == "visible"
