"""How kernels are compiled: without the interpreter's lock, by IEEE rules, and kept for the next process."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numba
from numba.core import event
from numba.core.options import DefaultOptions

from dask_uncert.blocks.kernels.cache import ensure_cache

NO_COUNTING = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}  # numba does not document it
OURS = __name__.split(".")[0]
ensure_cache()


class _WithoutCollecting(event.Listener):  # type: ignore[misc]
    """Look for no garbage while a kernel is compiled, which took a sixth of the time: most of what is made stays."""

    def __init__(self) -> None:
        self.depth, self.enabled = 0, False  # numba compiles in one thread at a time; a kernel compiles those it calls

    def on_start(self, what: Any) -> None:
        if self._is_ours(what):
            self.enabled = gc.isenabled() if self.depth == 0 else self.enabled
            self.depth += 1
            gc.disable()

    def on_end(self, what: Any) -> None:
        if self._is_ours(what):
            self.depth -= 1
            if self.depth == 0 and self.enabled:
                gc.enable()

    def _is_ours(self, what: Any) -> bool:
        return str(what.data["dispatcher"].py_func.__module__).startswith(f"{OURS}.")


event.register("numba:compile", _WithoutCollecting())


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
