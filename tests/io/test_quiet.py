"""What becomes of a warning stays as it was, also where another thread compiles meanwhile."""

import threading
import warnings

import numba
from numba.core.compiler_lock import global_compiler_lock

from dask_uncert.io.quiet import quiet


def test_opening_beside_a_thread_that_compiles_leaves_warnings_as_they_were():
    opened, compiled = threading.Event(), threading.Event()

    def open_files():
        with quiet():
            opened.set()
            compiled.wait(5)

    other, before = threading.Thread(target=open_files), warnings.filters
    with global_compiler_lock, warnings.catch_warnings(record=True):  # as numba does
        other.start()
        assert not opened.wait(0.3)
    compiled.set()
    other.join()
    assert warnings.filters is before


def test_code_compiled_inside_keeps_it_quiet():
    with quiet():
        assert numba.njit(lambda x: x + 1)(1) == 2
        warnings.warn("of another library", stacklevel=1)
