"""The page in a browser without network: its controls give the same numbers as Python."""

from __future__ import annotations

import base64
import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas import selective
from dask_uncert.metrics import calibration as calibration_metrics
from dask_uncert.metrics import classification
from dask_uncert.metrics import distributions as distribution_metrics
from dask_uncert.metrics.rankings import best_threshold, threshold_table
from dask_uncert.metrics.sweep import sweep
from dask_uncert.reports.page import payload
from dask_uncert.spec.inputs import Input
from tests.support.pages import resize, write_page

Keys = pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed").Keys
pytestmark = pytest.mark.slow
CLASSES = {1: "grass", 2: "it's <b>&", 3: "never"}
CELLS = ("TP", "TN", "FP", "FN")
METRICS = ("accuracy", "precision", "recall", "false_positive_rate", "f1", "specificity",
           "negative_predictive_value", "balanced_accuracy", "iou", "matthews", "kappa")  # fmt: skip


def drawn(dtype="float32", n=4000, **options):
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.dirichlet([0.6, 0.6], n), np.zeros((n, 1))], axis=1).astype(dtype)
    wrong = rng.random(n) < 0.2
    reference = np.where(wrong, 1 - p[:, :2].argmax(1), p[:, :2].argmax(1)) + 1
    settings = {"classes": CLASSES, "measures": ["gini", "entropy"], **options}
    return evaluate(p.reshape(40, -1, 3), reference.reshape(40, -1), **settings)


SOFT = [
    {"class": "grass", "thresholds": [0.3, 0.7], "uncertainty": "gini"},
    {"class": "grass", "thresholds": [0.5]},
    {"class": CLASSES[2], "uncertainty": "entropy"},
]


def fuzzy():
    """A fuzzy reference, a predicted uncertainty without a range, and a measure of samples in nat."""
    rng = np.random.default_rng(6)
    p = rng.random((30, 40))
    samples = np.clip(p + rng.normal(0, 0.1, (4, 30, 40)), 0, 1)
    return evaluate(
        None,
        Input(np.rint(rng.random((30, 40)) * 7) / 7, fuzzy=True),
        samples=samples,
        uncertainty=rng.gamma(0.5, 30, (30, 40)),
        classes={0: "out", 1: "in"},
        axis=None,
        measures=["mutual_information"],
        soft_confusion=[{"class": "in", "thresholds": [0.4], "uncertainty": "uncertainty"}],
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Evaluation and page, by kind."""
    folder = tmp_path_factory.mktemp("pages")
    maps = {name: (np.linspace(0, 1, 12).reshape(3, 4), ("y", "x")) for name in ("gini", "entropy")}
    pages = {}
    for name, evaluation, shown in (
        ("full", drawn(soft_confusion=SOFT, uncertainty_confusion={"thresholds": [0.25, 0.3333]}), maps),
        ("half", drawn("float16", soft_confusion=SOFT[:1]), {}),
        ("bare", drawn(measures=[]), {}),
        ("fuzzy", fuzzy(), {}),
        ("empty", drawn(ignore=[1, 2], classes={3: "no", 4: "none", 5: "not"}, soft_confusion=[{}]), {}),
    ):
        write_page(evaluation, folder / f"{name}.html", shown, {"input": "somewhere"})
        pages[name] = evaluation, folder / f"{name}.html"
    return pages


@pytest.fixture
def page(browser, pages):
    """Opens a page; afterwards, checks that it used no network."""

    def open_it(name):
        resize(browser, 1280)
        evaluation, path = pages[name]
        browser.get(path.as_uri())
        settle(browser)
        return evaluation

    yield open_it
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    urls = [parameters["request"]["url"] for parameters in requests]
    assert {url.partition(":")[0] for url in urls} <= {"file", "data", "blob"}
    assert urls


def settle(browser):
    """Waits for the charts and for two more frames."""
    browser.execute_async_script(
        """const done = arguments[0], begin = Date.now();
        const drawn = () => !document.getElementById("explorer") || document.getElementById("explorer").hidden
          || document.querySelectorAll("[id^=chart-] *").length >= document.querySelectorAll("[id^=chart-]").length;
        const look = () => drawn() || Date.now() - begin > 20000
          ? requestAnimationFrame(() => requestAnimationFrame(() => done())) : setTimeout(look, 20);
        look();"""
    )


MOVE = """
const [controls] = arguments;
for (const [id, value] of Object.entries(controls)) {
  const element = document.getElementById(id);
  element.value = value;
  element.dispatchEvent(new Event(element.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
}
const numbers = {};
for (const element of document.querySelectorAll("[data-number]")) numbers[element.dataset.number] = Number(element.dataset.value);
for (const element of document.querySelectorAll("[data-bound-of]")) numbers[element.dataset.boundOf + "_bound"] = Number(element.dataset.bound);
return numbers;
"""
DATA = "return Bokeh.documents.at(-1).get_model_by_name(arguments[0]).data"


def move(browser, **controls):
    """Moves controls one after the other; returns every number on the page with all digits, by name."""
    ids = {name.replace("_", "-"): value for name, value in controls.items()}
    numbers = browser.execute_script(MOVE, ids)
    return {name: np.nan if value is None else value for name, value in numbers.items()}


def source(browser, name):
    settle(browser)
    columns = browser.execute_script(DATA, name).items()
    return {key: np.array([np.nan if v in (None, "NaN") else v for v in column]) for key, column in columns}


def near(shown, expected):
    """Checks that numbers agree to 1e-9, absolute or relative."""
    np.testing.assert_allclose(shown, expected, rtol=1e-9, atol=1e-9)


def same_as_sweep(shown, evaluation, name, t, sigma, damping, **options):
    soft = sweep(evaluation, name, thresholds=t, sigmas=sigma, dampings=damping, **options)
    for key in (*CELLS, *METRICS):
        near(shown[f"soft.{key}"], soft.values[key].item())
        near(shown[f"soft.{key}_bound"], soft.bounds[key].item())
    near(shown["soft.share"], soft.share.item())
    hard = sweep(evaluation, name, thresholds=t, **options)
    for key in (*CELLS, *METRICS):
        near(shown[f"hard.{key}"], hard.values[key].item())


def test_every_slider_gives_the_numbers_of_the_sweep(browser, page):
    evaluation = page("full")
    state = {"t": 0.3, "sigma": 0.1, "damping": 1.0}
    moves = (
        ("t", 0.3),
        ("t", 0.7),
        ("sigma", 0.03),
        ("damping", 2.5),
        ("t", 0.41),
        ("sigma", 0),
        ("damping", 0),
        ("sigma", 0.5),
    )
    for control, value in moves:
        state[control] = value
        shown = move(browser, **{control: value})
        same_as_sweep(shown, evaluation, "grass", *state.values(), uncertainty="gini")


def test_number_boxes_accept_any_valid_number(browser, page):
    evaluation = page("full")
    for t, sigma, damping in [(0.123456789, 1.7, 0), (0.7, 1e-7, 31.25), (1 / 3, 0.021, 900)]:
        shown = move(browser, t_box=t, sigma_box=sigma, damping_box=damping)
        same_as_sweep(shown, evaluation, "grass", t, sigma, damping, uncertainty="gini")
    shown = move(browser, t_box=2, sigma_box=-1)  # out of range: ignored
    same_as_sweep(shown, evaluation, "grass", 1 / 3, 0.021, 900, uncertainty="gini")


def test_classes_and_their_damping_measures_can_be_chosen(browser, page):
    evaluation = page("full")
    shown = move(browser, t=0.5, sigma=0.2, damping=1, damped_by=1)
    joint = tuple(joint for joint in evaluation.joint if not joint.settings.uncertainty)
    undamped = replace(evaluation, joint=joint)
    same_as_sweep(shown, undamped, "grass", 0.5, 0.2, 0.0)
    assert not browser.find_element("id", "damping").is_enabled()
    shown = move(browser, **{"class": "1"})
    same_as_sweep(shown, evaluation, CLASSES[2], 0.5, 0.2, 1.0)
    assert browser.find_element("id", "soft-title").text == f"{CLASSES[2]} against the rest"
    command = browser.find_element("css selector", "[data-text=command]").text
    assert "--class 'it'\"'\"'s <b>&' --threshold 0.5 --sigma 0.2 --damping 1" in command
    move(browser, **{"class": "2"})
    assert not browser.find_element("id", "soft-numbers").is_displayed()
    browser.find_element("css selector", "#soft-choices button").send_keys(Keys.ENTER)
    assert browser.find_element("id", "class").get_attribute("value") == "0"
    assert browser.find_element("id", "soft-numbers").is_displayed()


def test_arrow_keys_move_a_slider(browser, page):
    evaluation = page("full")
    slider = browser.find_element("id", "sigma")
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_RIGHT)
    assert browser.find_element("id", "sigma-box").get_attribute("value") == "0.12"
    same_as_sweep(move(browser), evaluation, "grass", 0.3, 0.12, 1.0, uncertainty="gini")
    browser.find_element("id", "tau").send_keys(Keys.HOME)
    lowest = payload.page_edges(evaluation.measures["gini"])[1]
    assert float(browser.find_element("id", "tau-box").get_attribute("value")) == pytest.approx(lowest)
    assert slider.get_attribute("aria-valuetext") == "0.12"


@pytest.mark.parametrize(("name", "settings"), [("half", [(0.3, 0.1, 1.0), (0.41, 0.02, 4.0)]),
                                                ("fuzzy", [(0.4, 0.2, 0.05), (0.55, 0.1, 2.0)])])  # fmt: skip
def test_float16_and_fuzzy_data_give_the_numbers_of_the_sweep(browser, page, name, settings):
    evaluation = page(name)
    for t, sigma, damping in settings:
        shown = move(browser, t_box=t, sigma_box=sigma, damping_box=damping)
        same_as_sweep(shown, evaluation, None, t, sigma, damping)


def test_curves_are_those_of_the_sweep(browser, page):
    evaluation = page("full")
    move(browser, t=0.4, damping_box=0.7)
    for name, damping in [("curve-0", 0.0), ("curve-3", 2.0), ("curve-chosen", 0.7)]:
        drawn_curve = source(browser, name)
        sigmas = drawn_curve["sigma"].tolist()
        assert (sigmas[0], sigmas[-1], len(sigmas)) == (0, 0.5, 26)
        settings = {"thresholds": 0.4, "sigmas": sigmas, "dampings": damping, "uncertainty": "gini"}
        swept = sweep(evaluation, "grass", **settings)
        near(drawn_curve["share"], swept.share[0, :, 0])
        for key in ("f1", "accuracy", "precision", "recall", "false_positive_rate"):
            value, bound = swept.values[key][0, :, 0], swept.bounds[key][0, :, 0]
            near(drawn_curve[key], value)
            near(drawn_curve[f"{key}_high"], np.minimum(1, value + bound))
            near(drawn_curve[f"{key}_low"], np.maximum(0, value - bound))


@pytest.mark.parametrize("name", ["full", "fuzzy"])
def test_the_slider_of_tau_updates_the_uncertainty_confusion(browser, page, name):
    evaluation = page(name)
    measure = list(evaluation.measures)[-1]
    distribution = evaluation.measures[measure]
    move(browser, measure=len(evaluation.measures) - 1)
    for index in (-1, 0, 1):
        wrong, right = distribution.histogram[index] if index >= 0 else distribution.histogram.sum(axis=0)
        chosen = replace(distribution, histogram=np.stack([wrong, right])[np.newaxis])
        chosen = replace(evaluation, distributions=(chosen,))
        coverage, risk = selective.risk_coverage(right, wrong)
        move(browser, **{"class": index})
        edges = payload.page_edges(distribution)
        for last in (1, len(edges) // 3, len(edges) - 1):
            shown = move(browser, tau=last)
            expected = distribution_metrics.uncertainty_confusion(chosen, measure, edges[last])
            upto = distribution.edges.index(edges[last]) - 1
            for key, value in expected.items():
                near(shown[f"uncertainty.{key}"], float(value))
            near(shown["uncertainty.coverage"], coverage[upto])
            near(shown["uncertainty.risk"], risk[upto])
            box = browser.find_element("id", "tau-box").get_attribute("value")
            assert float(box) == pytest.approx(edges[last])
        ecdf, curve = source(browser, "ecdf-wrong"), source(browser, "risk")
        shares = distribution_metrics.ecdf(chosen, measure, "wrong")[1]
        shares = shares[np.isin(distribution.edges[1:], edges)]
        edges = edges[1:]
        near(ecdf["share"][np.searchsorted(ecdf["u"], edges, side="right") - 1], shares)
        near(curve["risk"][-1], risk[-1])
        near(curve["coverage"][-1], 1.0)


def test_the_decision_threshold_of_a_class_gives_the_numbers_of_its_table(browser, page):
    evaluation = page("full")
    for number, (name, at) in enumerate(zip(evaluation.class_names, (0.359, 0.0, 1.0), strict=True)):
        found = move(browser, threshold_class=number, threshold_box=at)
        expected = threshold_table(evaluation, name).sel(threshold=at, method="nearest")
        for key in ("TP", "FP", "FN", "precision", "recall", "f1"):
            np.testing.assert_equal(found[f"chosen.{key}"], expected[key].item(), f"{name} {key}")
        np.testing.assert_equal(found["decided.f1"], classification.f1(evaluation).sel({"class": name}).item())
    move(browser, threshold_class=0)
    browser.execute_script("document.querySelector('[data-best=f1]').click()")
    assert float(browser.find_element("id", "threshold-box").get_attribute("value")) == pytest.approx(
        best_threshold(evaluation, "grass").threshold, abs=1e-4
    )


def test_thresholds_of_the_job_are_ticks_of_tau(browser, page):
    evaluation = page("full")
    shown = move(browser, tau_box=0.3333, **{"class": -1})
    expected = distribution_metrics.uncertainty_confusion(evaluation, "gini", 0.3333)
    near(shown["uncertainty.TU"], expected["TU"].item())
    ticks = browser.find_elements("css selector", "#tau-ticks option")
    edges = payload.page_edges(evaluation.measures["gini"])
    assert [edges[int(tick.get_attribute("value"))] for tick in ticks] == [0.25, 0.3333]


def test_reliability_is_that_of_the_predicted_or_of_the_chosen_class(browser, page):
    evaluation = page("full")
    calibration = evaluation.calibration
    shown = move(browser, **{"class": -1})
    near(shown["calibration.ece"], calibration_metrics.expected_calibration_error(evaluation))
    near(shown["calibration.mce"], calibration_metrics.maximum_calibration_error(evaluation))
    stated, observed = calibration_metrics.reliability(evaluation)
    near(source(browser, "reliability")["stated"], stated)
    near(source(browser, "reliability")["observed"], observed)
    move(browser, **{"class": 1})
    near(source(browser, "reliability")["n"], calibration.binned(calibration.fine_by_class).number[1])


def test_maps_are_enlarged_with_the_keyboard(browser, page):
    page("full")
    thumbs = browser.find_elements("css selector", "button.thumb")
    dialog = browser.find_element("id", "enlarged")
    assert not dialog.is_displayed()
    thumbs[0].send_keys(Keys.ENTER)
    assert dialog.is_displayed()
    assert dialog.find_element("tag name", "figcaption").text == "Gini 3 × 4 px, y × x"
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert dialog.find_element("tag name", "figcaption").text.startswith("Entropy")
    assert dialog.find_element("tag name", "img").size["width"] > 1.5 * thumbs[0].size["width"]
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not dialog.is_displayed()
    assert browser.switch_to.active_element == thumbs[1]


def test_the_table_of_classes_sorts(browser, page):
    evaluation = page("full")
    table = browser.find_element("css selector", "table[data-sortable]")

    def names():
        return [element.text for element in table.find_elements("css selector", "tbody th")]

    original = names()
    assert original == [element.name for element in evaluation.classes]
    heads = table.find_elements("css selector", "thead th")
    head = next(element for element in heads if element.text.startswith("F1"))
    f1 = classification.f1(evaluation).values
    rising = [evaluation.classes[i].name for i in np.argsort(f1[:2])]
    orders = {"descending": [*rising[::-1], "never"], "ascending": [*rising, "never"], None: original}
    for state, expected in orders.items():
        head.find_element("tag name", "button").send_keys(Keys.ENTER)
        assert head.get_attribute("aria-sort") == state
        assert names() == expected  # undefined values are last in both directions
    assert "mean" in table.find_element("css selector", "tfoot th").text


@pytest.mark.parametrize(("name", "charts"), [("full", 11), ("fuzzy", 11), ("bare", 2), ("empty", 11)])
def test_nothing_is_wider_than_the_window(browser, page, name, charts):
    page(name)
    for width in (1280, 390):
        resize(browser, width)
        settle(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        boxes = browser.execute_script(
            """return [".card, .dock, .headline div", "[id^=chart-]"].map((kind) =>
            [...document.querySelectorAll(kind)].map((element) => (kind[0] === "[" ? element.firstElementChild : element)
            .getBoundingClientRect()).map((box) => [box.left, box.right]))"""
        )
        assert len(boxes[1]) == charts
        for left, right in boxes[0] + boxes[1]:
            assert 0 <= left < right <= width
        assert all(right - left > 150 for left, right in boxes[1])


@pytest.mark.parametrize("name", ["full", "bare", "fuzzy"])
def test_charts_without_an_element_are_hidden(browser, page, name):
    page(name)
    below = browser.execute_script(
        """const end = document.querySelector("footer").getBoundingClientRect().bottom;
        const boxes = [...document.body.children].map((element) => element.getBoundingClientRect());
        return boxes.filter((box) => box.height > 1 && box.top >= end - 1).length"""
    )
    assert below == 0


def test_every_control_has_a_name_and_is_reached_by_tab(browser, page):
    page("full")
    reached = set()
    browser.execute_script("document.getElementById('class').focus()")
    for _ in range(12):
        active = browser.switch_to.active_element
        reached.add(active.get_attribute("id"))
        assert active.accessible_name
        active.send_keys(Keys.TAB)
    boxes = {f"{name}{box}" for name in ("t", "sigma", "damping", "tau") for box in ("", "-box")}
    assert reached >= {"class", "measure", *boxes}


def test_reset_restores_the_start(browser, page):
    page("full")
    first = move(browser)
    assert move(browser, t=0.8, sigma=0.4, tau=900, **{"class": 1}) != first
    browser.find_element("id", "reset").send_keys(Keys.ENTER)
    again = move(browser)
    assert {k: v for k, v in again.items() if v == v} == {k: v for k, v in first.items() if v == v}


def test_prints_have_charts_and_no_controls(browser, page):
    page("full")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    pictures = browser.find_elements("css selector", ".on-paper svg")
    assert len(pictures) == len(browser.find_elements("css selector", "[id^=chart-]")) == 11
    assert all(picture.find_elements("css selector", "path, image") for picture in pictures)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find_element("id", "dock").is_displayed()
    assert all(picture.is_displayed() for picture in pictures)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not browser.find_elements("css selector", ".on-paper")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")


def test_without_scripts_there_are_tables_and_a_note(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(pages["full"][1].as_uri())
        assert not browser.find_element("id", "explorer").is_displayed()
        assert "needs JavaScript" in browser.find_element("css selector", "noscript section").text
        tables = browser.find_elements("css selector", "main > section:not(#explorer, #threshold) table")
        assert len(tables) > 6
        assert all(table.is_displayed() for table in tables)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_functions_of_the_script_are_exact(browser, page):
    page("bare")
    z = np.concatenate([[0.0], np.geomspace(1e-12, 40, 400)])
    values = browser.execute_script("return arguments[0].map(softConfusion.certainty)", z.tolist())
    np.testing.assert_allclose(values, special.erf(z / np.sqrt(2)), rtol=2e-15)
    halves = [0.1, 1 / 3, 0.5, 2.0**-24, 3 * 2.0**-25, 1e-8, 0.33325195, 0.99999, 0.4999]
    for dtype in ("float16", "float32"):
        script = f"return arguments[0].map((t) => softConfusion.asStored(t, '{dtype}'))"
        assert browser.execute_script(script, halves) == [float(np.dtype(dtype).type(t)) for t in halves]


def test_joint_histograms_that_do_not_fit_are_listed_with_their_command(tmp_path, monkeypatch, browser):
    evaluation = drawn(soft_confusion=SOFT)
    path = tmp_path / "report.html"
    write_page(evaluation, path)
    size = path.stat().st_size
    sizes = [len(payload.json_text(payload.joint_data(evaluation, joint))) for joint in evaluation.joint]
    monkeypatch.setattr("dask_uncert.reports.page.scene.MOST_BYTES", size - sizes[1] // 2)
    write_page(evaluation, path)
    assert path.stat().st_size <= size - sizes[1] // 2
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="explorer-data">(.*?)</script>', text, re.S)[1])
    assert len(data["joint"]) == 2
    browser.get(path.as_uri())
    named = browser.find_element("css selector", "#explorer ul.note").text
    left_out = [joint for joint in evaluation.joint if payload.command(evaluation, joint) in named]
    assert len(left_out) == 1
    arguments = shlex.split(payload.command(evaluation, left_out[0]))
    assert arguments[:4] == ["dask-uncert", "sweep", ".", "--class"]
    assert arguments[4] == evaluation.classes[left_out[0].settings.class_index].name
