"""The page in a real browser with the network cut: its controls give the numbers that Python gives."""

from __future__ import annotations

import base64
import json
import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import special

from dask_uncert.evaluate import evaluate
from dask_uncert.formulas import selective
from dask_uncert.reports import explorer
from dask_uncert.reports.html import write_report
from dask_uncert.summaries import calibration_readings, readings

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no Chromium with its driver (Debian: chromium, chromium-driver)"
)
CLASSES = {1: "grass", 2: "it's <b>&", 3: "never"}
CELLS = ("TP", "TN", "FP", "FN")
METRICS = ("accuracy", "precision", "recall", "false_positive_rate", "f1", "specificity",
           "negative_predictive_value", "balanced_accuracy", "iou", "matthews", "kappa")  # fmt: skip


def drawn(dtype="float32", n=4000, **words):
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.dirichlet([0.6, 0.6], n), np.zeros((n, 1))], axis=1).astype(dtype)
    wrong = rng.random(n) < 0.2
    reference = np.where(wrong, 1 - p[:, :2].argmax(1), p[:, :2].argmax(1)) + 1
    settings = {"classes": CLASSES, "measures": ["gini", "entropy"], **words}
    return evaluate(p.reshape(40, -1, 3), reference.reshape(40, -1), **settings)


SOFT = [
    {"class": "grass", "thresholds": [0.3, 0.7], "uncertainty": "gini"},
    {"class": "grass", "thresholds": [0.5]},
    {"class": CLASSES[2], "uncertainty": "entropy"},
]


def fuzzy():
    """Shares of raters, a predicted uncertainty without a range, and one measure of samples in nat."""
    rng = np.random.default_rng(6)
    p = rng.random((30, 40))
    samples = np.clip(p + rng.normal(0, 0.1, (4, 30, 40)), 0, 1)
    return evaluate(
        None,
        np.rint(rng.random((30, 40)) * 7) / 7,
        samples=samples,
        uncertainty=rng.gamma(0.5, 30, (30, 40)),
        classes={0: "out", 1: "in"},
        axis=None,
        fuzzy=True,
        measures=["mutual_information"],
        soft_confusion=[{"class": "in", "thresholds": [0.4], "uncertainty": "uncertainty"}],
    )


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "force-device-scale-factor=1",
                 "host-resolver-rules=MAP * ~NOTFOUND", "no-proxy-server"):  # fmt: skip
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Evaluation and page of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    maps = {name: (np.linspace(0, 1, 12).reshape(3, 4), ("y", "x")) for name in ("gini", "entropy")}
    found = {}
    for name, one, shown in (
        ("full", drawn(soft_confusion=SOFT, uncertainty_confusion={"thresholds": [0.25, 0.3333]}), maps),
        ("half", drawn("float16", soft_confusion=SOFT[:1]), {}),
        ("bare", drawn(measures=[]), {}),
        ("fuzzy", fuzzy(), {}),
    ):
        write_report(one, folder / f"{name}.html", shown, {"input": "somewhere"})
        found[name] = one, folder / f"{name}.html"
    return found


@pytest.fixture
def page(browser, made):
    """Opens a page, and sees afterwards that nothing was complained of and nothing was asked for."""

    def open_it(name, width=1280, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        evaluation, path = made[name]
        browser.get(path.as_uri())
        settle(browser)
        return evaluation

    browser.get_log("browser"), browser.get_log("performance")
    yield open_it
    assert not [one for one in browser.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]
    events = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), asked


def settle(browser):
    """Waits until charts are there and two more frames have passed."""
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
  const one = document.getElementById(id);
  one.value = value;
  one.dispatchEvent(new Event(one.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
}
const found = {};
for (const one of document.querySelectorAll("[data-out]")) found[one.dataset.out] = Number(one.dataset.value);
for (const one of document.querySelectorAll("[data-bound-of]")) found[one.dataset.boundOf + "_bound"] = Number(one.dataset.bound);
return found;
"""
DATA = "return Bokeh.documents.at(-1).get_model_by_name(arguments[0]).data"


def move(browser, **controls):
    """Moves controls one after the other, as a hand would; every number then shown, all digits, by name."""
    return {
        name: np.nan if value is None else value
        for name, value in browser.execute_script(MOVE, {k.replace("_", "-"): v for k, v in controls.items()}).items()
    }


def source(browser, name):
    settle(browser)
    columns = browser.execute_script(DATA, name)
    return {key: np.array([np.nan if v in (None, "NaN") else v for v in column]) for key, column in columns.items()}


def near(shown, expected):
    """Equal to 1e-9 of 1, or of the number where that is larger."""
    np.testing.assert_allclose(shown, expected, rtol=1e-9, atol=1e-9)


def same_as_sweep(shown, evaluation, name, t, sigma, damping, **words):
    found = evaluation.sweep(name, thresholds=t, sigmas=sigma, dampings=damping, **words)
    for one in (*CELLS, *METRICS):
        near(shown[f"soft.{one}"], found.values[one].item())
        near(shown[f"soft.{one}_bound"], found.bounds[one].item())
    near(shown["soft.share"], found.share.item())
    hard = evaluation.sweep(name, thresholds=t, **words)
    for one in (*CELLS, *METRICS):
        near(shown[f"hard.{one}"], hard.values[one].item())


def test_every_slider_moves_the_numbers_to_those_of_the_sweep(browser, page):
    evaluation = page("full")
    state = {"t": 0.3, "sigma": 0.1, "damping": 1.0}
    moves = [{}, {"t": 0.7}, {"sigma": 0.03}, {"damping": 2.5}, {"t": 0.41}, {"sigma": 0}, {"damping": 0}, {"sigma": 0.5}]
    for change in moves:
        state |= change
        shown = move(browser, **change)
        same_as_sweep(shown, evaluation, "grass", *state.values(), uncertainty="gini")


def test_number_boxes_take_what_sliders_cannot(browser, page):
    evaluation = page("full")
    for t, sigma, damping in [(0.123456789, 1.7, 0), (0.7, 1e-7, 31.25), (1 / 3, 0.021, 900)]:
        shown = move(browser, t_box=t, sigma_box=sigma, damping_box=damping)
        same_as_sweep(shown, evaluation, "grass", t, sigma, damping, uncertainty="gini")
    shown = move(browser, t_box=2, sigma_box=-1)  # out of range: what held before holds still
    same_as_sweep(shown, evaluation, "grass", 1 / 3, 0.021, 900, uncertainty="gini")


def test_classes_and_their_damping_measures_can_be_picked(browser, page):
    evaluation = page("full")
    shown = move(browser, t=0.5, sigma=0.2, damping=1, record="1")
    undamped = replace(evaluation, joint=tuple(one for one in evaluation.joint if not one.settings.uncertainty))
    same_as_sweep(shown, undamped, "grass", 0.5, 0.2, 0.0)
    assert not browser.find_element(By.ID, "damping").is_enabled()
    shown = move(browser, **{"class": "1"})
    same_as_sweep(shown, evaluation, CLASSES[2], 0.5, 0.2, 1.0)
    assert browser.find_element(By.ID, "soft-title").text == f"{CLASSES[2]} against the rest"
    command = browser.find_element(By.CSS_SELECTOR, "[data-say=command]").text
    assert "--class 'it'\"'\"'s <b>&' --threshold 0.5 --sigma 0.2 --damping 1" in command
    move(browser, **{"class": "2"})
    assert not browser.find_element(By.ID, "soft-found").is_displayed()
    browser.find_element(By.CSS_SELECTOR, "#soft-kept button").send_keys(Keys.ENTER)
    assert browser.find_element(By.ID, "class").get_attribute("value") == "0"
    assert browser.find_element(By.ID, "soft-found").is_displayed()
