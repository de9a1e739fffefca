"""How kernels are compiled: without the interpreter's lock, by IEEE rules, and kept for the next process."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
from numba.core.options import DefaultOptions

from dask_uncert.blocks.kernels.cache import ensure_cache

NO_COUNTING = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}  # numba does not document it
ensure_cache()


def compiled(function: Any = None, *, arrays: bool = False, step: bool = False) -> Any:
    """Compile a function; the machine code is kept where a folder can be written.

    arrays: whether it makes arrays. Of one that does not, nothing counts who refers to a view of an array, which takes
    longer than some of these functions. step: whether only compiled functions call it: a fourth less to compile.
    """
    if function is None:
        return partial(compiled, arrays=arrays, step=step)
    options = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": step, "no_cfunc_wrapper": True}
    options |= {} if arrays else NO_COUNTING
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written
        return numba.njit(**options)(function)
