"""Large arrays keep what is in them while anything refers to them, and only then."""

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.io import large_pages
from dask_uncert.io.large_pages import IDLE, LEAST, empty, zeros

sizes = st.integers(1, 3 * LEAST)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(sizes, st.booleans()), max_size=12))
def test_arrays_share_no_memory_while_they_live(steps):
    alive = []
    for number, (size, keep_a_view) in enumerate(steps):
        array = empty((size,), np.uint8)
        array[:] = number
        alive.append((number, array[size // 2 :] if keep_a_view else array))
        del array
        if number % 3 == 2:
            alive.pop(0)
        assert all((values == mark).all() for mark, values in alive)
    assert not zeros((LEAST, 2), np.float64).any()


def test_pages_are_used_again_and_given_back_when_many_are_idle():
    large_pages._idle.clear()
    first = empty((LEAST,), np.int64)
    place = first.ctypes.data
    del first
    assert empty((LEAST,), np.int64).ctypes.data == place
    many = [empty((16 * LEAST,), np.uint8) for _ in range(2 * IDLE // (16 * LEAST))]
    many.clear()
    assert 0 < sum(map(len, large_pages._idle)) <= IDLE


def test_threads_get_pages_of_their_own():
    def fill(mark):
        for _ in range(200):
            array = empty((LEAST,), np.uint8)
            array[:] = mark
            wrong.extend([mark] * bool((array != mark).any()))

    wrong: list[int] = []
    threads = [threading.Thread(target=fill, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
