"""What results show of themselves: ten lines in a terminal, an escaped piece of page, a DataFrame, by name."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr

import dask_uncert as du

NAMES = ["<b>Corn</b> & co", *(f"class {i}" for i in range(1, 12))]


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.full(12, 0.4), (40, 40)), rng.integers(0, 12, (40, 40))
    soft = [{"class": "class 1"}]
    return du.evaluate(
        p, y, classes=NAMES, measures=["gini", "entropy"], soft_confusion=soft, confidence={"size": 8, "replicates": 50}
    )


@pytest.fixture(scope="module")
def shown(scene):
    stack = du.Stack.of(
        {f"P{i:02}": scene for i in range(12)}, groups={"<site>": {f"P{i:02}": "Oslo" for i in range(12)}}
    )
    regression = du.evaluate_regression(np.zeros(4), np.array([0.1, -0.5, 1.0, 2.0]), variance=np.ones(4))
    swept = du.sweep(scene, "class 1", sigmas=np.linspace(0, 0.3, 20))
    return {
        "Evaluation": scene,
        "RegressionEvaluation": regression,
        "Stack": stack,
        "Sweep": swept,
        "Comparison": du.compare(scene, scene, metrics="classes/*/f1", replicates=20, permutations=20),
    }


class Tags(HTMLParser):
    """Collects tags, checks that they nest, and that nothing is fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not {"src", "href", "onload"} & {name for name, _ in attrs}
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("kind", ["Evaluation", "RegressionEvaluation", "Stack", "Sweep", "Comparison"])
def test_ten_lines_and_a_small_escaped_piece_of_page(shown, kind):
    lines = repr(shown[kind]).splitlines()
    assert 4 <= len(lines) <= 10
    assert max(map(len, lines)) <= 160
    tags = Tags()
    tags.feed(text := shown[kind]._repr_html_())
    assert not tags.open
    assert not {"script", "b", "site"} & tags.seen
    assert len(text) < 20_000
    assert "table" in tags.seen
    assert ("<b>Corn</b> & co" in tags.text) == (kind in ("Evaluation", "Stack", "Comparison"))


def test_numbers_shown_are_those_of_the_functions(scene):
    assert f"accuracy {du.accuracy(scene):.4f}, kappa {du.kappa(scene):.4f}" in repr(scene)
    assert f"{du.f1(scene)[1].item():.4f}" in repr(scene)
    table, results = scene.to_dataframe()["value"], du.results(scene)
    assert json.loads(json.dumps(results)) == results
    assert table["counted"] == results["counted"] == 1600
    assert table["overall/macro_f1"] == results["overall"]["macro_f1"]
    assert table["calibration/ece"] == results["calibration"]["ece"] == du.expected_calibration_error(scene)
    for row in results["classes"]:
        for name in ("support", "predicted", "precision", "recall", "f1", "iou"):
            assert table[f"classes/{row['name']}/{name}"] == row[name]


def test_readings_by_class_carry_the_names(scene):
    for reading in (du.precision, du.recall, du.f1, du.iou):
        found = reading(scene)
        assert isinstance(found, xr.DataArray)
        assert (found.name, found.dims, found["class"].values.tolist()) == (reading.__name__, ("class",), NAMES)
    matrix = du.confusion_matrix(scene)
    assert matrix.sel(reference="class 3").sum() == scene.decisions.confusion[3].sum()
    assert matrix.sel(predicted="class 3").sum() == scene.decisions.confusion[:, 3].sum()
    by_name, by_number = (du.windows_curve(scene, key, [0.1, 0.5]) for key in ("class 2", 2))
    np.testing.assert_array_equal(by_name, by_number)
    with pytest.raises(du.InputError, match=r"no class 'Corn'.*class 1"):
        du.windows_curve(scene, "Corn", [0.1])


def test_intervals_by_name_are_those_of_the_results(scene, shown):
    found, results = du.intervals(scene), du.results(scene)
    assert [*found["overall/accuracy"][:2]] == results["overall"]["accuracy_interval"]
    low, high, _ = du.intervals(scene, "classes/class 3/*")["classes/class 3/f1"]
    assert [low, high] == results["classes"][3]["f1_interval"]
    narrow = du.intervals(scene, "overall/accuracy", level=0.5)["overall/accuracy"]
    assert found["overall/accuracy"].low < narrow.low < narrow.high < found["overall/accuracy"].high
    of_patients = du.intervals(shown["Stack"], "overall/kappa", replicates=20)["overall/kappa"]
    assert of_patients.low == of_patients.high == pytest.approx(du.kappa(scene))  # patients are all alike
    with pytest.raises(du.InputError, match="no tiles"):
        du.intervals(du.evaluate([[0.9, 0.1]], [0]))
    with pytest.raises(du.InputError, match="nothing is called 'dice'"):
        du.intervals(scene, "dice")


def test_one_row_per_setting_and_per_metric(shown):
    swept, comparison = shown["Sweep"].to_dataframe(), shown["Comparison"].to_dataframe()
    assert swept["f1"].tolist() == [row["f1"] for row in shown["Sweep"].rows()]
    assert comparison.index.tolist() == [*shown["Comparison"].metrics]
    assert shown["RegressionEvaluation"].to_dataframe().loc["coverage/0.95", "value"] == 0.75
