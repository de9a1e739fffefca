"""Every piece of work that the benchmarks compare still runs, on little data."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks import cubes
from tests.benchmarks.__main__ import Pair, compare, long_pairs, pairs
from tests.benchmarks.work import WORK

SIDES = {
    json.dumps(side): side
    for pair in [*pairs(128, 4, 640), *long_pairs(128)]
    for side in (pair.first, pair.second)
    if isinstance(side, tuple)
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Cubes are made here, not in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cubes, "CACHE", tmp_path_factory.mktemp("cubes"))
        patch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("scratch")))
        yield


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize("name", [name for name in SIDES if "words" not in name])
def test_it_runs(name, without_pictures):
    work, options = SIDES[name]
    options = {key: value for key, value in options.items() if key not in ("warm", "workers")}
    try:
        WORK[work](**options)()
    except ModuleNotFoundError as error:
        if work != "peer":
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.slow
def test_a_ratio_is_the_median_of_fresh_processes(monkeypatch, tmp_path):
    def waiting(seconds):
        return "command", {"words": ["python", "-c", f"import time; time.sleep({seconds})"]}

    row = compare(Pair("", "", waiting(1.2), waiting(0.3), factor=0.5), turns=3)
    assert row["lowest"] <= row["ratio"] <= row["highest"]
    assert 0.8 < row["ratio"] < 2.1
