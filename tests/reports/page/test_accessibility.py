"""The pages of a scene and of a cohort in a browser, light and dark, wide and narrow: no fault, and nothing is cut."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.io.maps import preview
from dask_uncert.reports.write import write_all
from dask_uncert.spec.inputs import Input
from tests.support import cohorts
from tests.support.pages import resize

pytestmark = pytest.mark.slow
LONG = ["Buildings, grass, trees and drives", "Donaudampfschifffahrtsgesellschaftskapitän", "Corn-notill"]
ABOUT = {"title": "Evaluation of a scene", "inputs": "/a/folder/" + 30 * "whose-name-is-long/"}


def write_scene(folder):
    """Write the page of a scene with all its sections and twenty classes, some with long names."""
    names = [*LONG, *(f"class {i} of the land cover" for i in range(17))]
    rng = np.random.default_rng(3)
    y = np.kron(rng.permutation(20).reshape(4, 5), np.ones((8, 8), int))
    p = rng.dirichlet(np.full(20, 0.3), y.shape) + np.where(
        np.arange(20) == y[..., None], rng.random(y.shape)[..., None], 0
    )
    shown = ["predicted", "correct", "gini", "confused_classes"]
    evaluation = evaluate(
        p / p.sum(-1, keepdims=True),
        np.where(rng.random(y.shape) < 0.05, 255, y + 1),
        zones=Input(
            np.kron([[1, 2], [3, 4]], np.ones((16, 20), int)),
            names={1: "the north-western part of the scene", 2: "north-east", 3: "south-west", 4: "south-east"},
        ),
        classes=dict(enumerate(names, 1)),
        ignore=255,
        measures=["gini", "homophily"],
        class_distances={"table": (1 - np.eye(20)).tolist()},
        soft_confusion=[{"class": names[1], "sigmas": [0.1], "uncertainty": "gini", "maps": True}],
        uncertainty_confusion={"thresholds": [0.25, 0.5]},
        prediction_sets={"coverages": [0.9], "missed": {names[0]: 0.1}},
        conventions=["scikit-learn"],
        maps=shown,
        maps_store=folder / "maps.zarr",
    )
    write_all(evaluation, folder / "scene", {name: preview(str(folder / "maps.zarr"), name) for name in shown}, ABOUT)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accessible")
    write_scene(folder)
    cohort, evaluation = cohorts.reported_cohort()
    write_all(evaluation, folder / "cohort", about=ABOUT, cohort=cohort)
    return folder


AXE = """
const done = arguments[0];
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(found.violations.map(
  (rule) => [rule.id, ...rule.nodes.slice(0, 5).map((node) => `${node.target}: ${node.failureSummary}`)])));
"""
CUT = """
const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
const some = (element, test) => element && element !== document.body
  && (test(element) || some(element.parentElement, test));
const name = (element) => `${element.tagName} ${element.className}: ${element.textContent.trim().slice(0, 40)}`;
const found = [];
for (const element of document.body.querySelectorAll("*")) {
  if (!element.checkVisibility() || some(element, (e) => e.matches(".unseen, svg *, option"))) continue;
  const box = element.getBoundingClientRect(), style = getComputedStyle(element);
  const outside = box.left < -0.5 || box.right > innerWidth + 0.5;
  if (outside && !some(element.parentElement, scrolls)) found.push(`outside: ${name(element)}`);
  const clips = ["hidden", "clip"].includes(style.overflowX) && !element.matches("select, details");
  const more = element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1;
  if (clips && more && element.textContent.trim()) found.push(`cut: ${name(element)}`);
}
return [document.documentElement.scrollWidth <= innerWidth, found];
"""
FIRST_COLUMNS = """
const wide = [...document.querySelectorAll(".scroll")].filter((area) => area.scrollWidth > area.clientWidth + 40);
const moved = [], left = (element) => element.getBoundingClientRect().left;
for (const area of wide) {
  area.scrollLeft = 40;
  for (const cell of area.querySelectorAll("tr > :first-child:not(.correct, .wrong)")) {
    if (cell.checkVisibility() && Math.abs(left(cell) - left(area)) > 1) moved.push(cell.textContent);
  }
}
return [wide.length, moved];
"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
@pytest.mark.parametrize("kind", ["scene", "cohort"])
def test_axe_core_finds_nothing(browser, pages, kind, scheme, width):
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    resize(browser, width)
    browser.get((pages / kind / "report.html").as_uri())
    browser.execute_script((resources.files(package) / "axe.min.js").read_text())
    assert browser.execute_async_script(AXE) == []


@pytest.mark.parametrize("kind", ["scene", "cohort"])
def test_nothing_is_cut_and_first_columns_stay(browser, pages, kind):
    for width in (1280, 390):
        resize(browser, width)
        browser.get((pages / kind / "report.html").as_uri())
        browser.execute_script("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert browser.execute_script(CUT) == [True, []]
    scrolled, moved = browser.execute_script(FIRST_COLUMNS)
    assert scrolled > 5
    assert moved == []
