"""Reads that fail in passing are tried again, so often and no oftener; what is not there is not."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.io import retries
from dask_uncert.io.retries import MAX_ATTEMPTS, Retried, retry_count, with_retries

PASSING = [
    PermissionError("x"),  # a server may refuse for a moment
    ConnectionResetError("x"),
    TimeoutError("x"),
    OSError(errno.EIO, "x"),
    RuntimeError("503 SlowDown"),
]
FINAL = [FileNotFoundError("x"), IsADirectoryError("x"), KeyError("x")]


def caused(error):
    """As readers word it."""
    try:
        try:
            raise error
        except type(error):
            raise InputError("the store cannot be read") from None
    except InputError as wrapped:
        return wrapped


class Failing:
    """An array whose reads fail so often."""

    store = "memory://a"

    def __init__(self, error, times):
        self.values = np.arange(5)
        self.shape, self.dtype, self.chunks = (5,), self.values.dtype, (2,)
        self.error, self.left, self.reads = error, times, 0

    def __getitem__(self, region):
        self.reads += 1
        if self.left:
            self.left -= 1
            raise self.error
        return self.values[region]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.0)


@given(st.sampled_from(PASSING), st.integers(0, 8), st.booleans())
def test_transient_errors_are_retried_a_few_times(error, times, wrapped):
    data, before = Failing(caused(error) if wrapped else error, times), retry_count()[1]
    stored = Retried(data)
    if times < MAX_ATTEMPTS[True]:
        assert stored[1:3].tolist() == [1, 2]
        assert retry_count()[1] - before == times
    else:
        with pytest.raises(type(data.error)):
            stored[1:3]
    assert data.reads == min(times + 1, MAX_ATTEMPTS[True])
    assert stored.chunks == (2,)


@given(st.sampled_from(FINAL), st.booleans(), st.booleans())
def test_not_found_is_final(error, wrapped, remote):
    data = Failing(caused(error) if wrapped else error, 1)
    with pytest.raises(type(data.error)):
        with_retries(lambda: data[0], remote)
    assert data.reads == 1


@given(
    st.sampled_from(
        [
            ValueError("bad chunk"),
            PermissionError(errno.EACCES, "x"),
            OSError(errno.ENOSPC, "x"),
            RuntimeError("checksum"),
        ]
    )
)
def test_local_damage_is_final(error):
    data = Failing(error, 1)
    with pytest.raises(type(error)):
        with_retries(lambda: data[0], remote=False)
    assert data.reads == 1


def test_waits_grow_and_are_bounded(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 4.0)
    waits = []
    with pytest.raises(TimeoutError):
        with_retries(lambda: Failing(TimeoutError("x"), 99)[0], True, waits.append)
    assert len(waits) == MAX_ATTEMPTS[True] - 1
    assert all(wait <= retries.LONGEST_WAIT for wait in waits)
    assert waits[0] <= 4 <= waits[-1] * 2
