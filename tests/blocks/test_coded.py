"""Binary predictions of 8 bits: counted by their codes, or pixel by pixel, the counts are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.blocks import coded
from dask_uncert.errors import InputError

SOFT = {"class": "1", "thresholds": [0.3, 0.7], "sigmas": [0.0, 0.1], "sweep": False}
OPTIONS = {
    "nothing more": {"measures": []},
    "measures": {"measures": ["gini", "entropy", "confused_classes"], "calibration": {"bins": 7}},
    "soft": {"measures": ["gini"], "soft_confusion": [SOFT, {"class": "0", "uncertainty": "gini"}]},
    "joint": {"measures": ["entropy"], "joint_distributions": ["entropy"], "ignore": 9},
    "reference": {"measures": ["gini"], "engine": "reference"},
}


def both_ways(monkeypatch, p, y, **words):
    found = []
    for least in (2, 1 << 60):
        monkeypatch.setattr(coded, "LEAST", least)
        found.append(du.evaluate(p, y, axis=None, block=(16, 40), **words))
    return found


@pytest.mark.parametrize("words", OPTIONS.values(), ids=OPTIONS)
def test_counted_by_codes_or_by_pixels(monkeypatch, words):
    rng = np.random.default_rng(len(words))
    p, y = (
        rng.choice([0, 1, 30, 76, 77, 127, 128, 178, 179, 200, 255], (40, 40)).astype("u1"),
        rng.choice([0, 1, 9], (40, 40)).astype("u1"),
    )
    mask = rng.random((40, 40)) < 0.8
    if "ignore" not in words:
        y %= 9
    one, other = both_ways(monkeypatch, du.Input(p, scale=1 / 255), y, mask=mask, **words)
    assert one == other
    assert one.ledger.counted.sum() > 800


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1 / 255, 1 / 256, 0.01 / 2.55, 1 / 250]))
def test_any_codes_and_scales(seed, scale):
    rng = np.random.default_rng(seed)
    p, y = rng.choice(rng.integers(0, 256, 9), (30, 40)).astype("u1"), rng.integers(0, 2, (30, 40))
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for least in (2, 1 << 60):
            patch.setattr(coded, "LEAST", least)
            try:
                results.append(du.evaluate(du.Input(p, scale=scale), y, axis=None, measures=["gini"]))
            except InputError as error:
                results.append(str(error))
    assert results[0] == results[1]


def test_pixels_are_not_looked_at_one_by_one(monkeypatch):
    monkeypatch.setattr(coded, "LEAST", 2)
    p, y = np.arange(256, dtype="u1").reshape(16, 16), np.zeros((16, 16), "u1")
    du.evaluate(du.Input(p, scale=1 / 255), y, axis=None, measures=["gini"])
    monkeypatch.setattr("dask_uncert.blocks.classification._Block.count", None)
    found = du.evaluate(du.Input(p[::-1], scale=1 / 255), y, axis=None, measures=["gini"])
    assert found.ledger.counted.sum() == 256
