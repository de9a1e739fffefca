"""How kernels are compiled: without the interpreter's lock, by IEEE rules, and kept for the next process.

Most of the time goes to numba's own Python code, not to LLVM. While one of our kernels is compiled, numba looks for no
garbage and types an operation on the same types once: together a fourth less.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from numba import types
from numba.core import event
from numba.core.options import DefaultOptions

from dask_uncert.blocks.kernels.cache import ensure_cache

NO_COUNTING = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}  # numba does not document it
OURS = __name__.split(".")[0]
ensure_cache()


class _Quicker(event.Listener):  # type: ignore[misc]
    """Leave out, while a kernel is compiled, what numba does in vain: most objects stay, and most operations come again."""

    def __init__(self) -> None:
        self.depth = 0  # numba compiles in one thread at a time; a kernel compiles those it calls
        self.collects, self.resolving = False, types.Function.get_call_type

    def on_start(self, what: Any) -> None:
        if self._is_ours(what):
            if self.depth == 0:
                self.collects = gc.isenabled()
                gc.disable()
                self.resolving = types.Function.get_call_type
                types.Function.get_call_type = _remembered(self.resolving)
            self.depth += 1

    def on_end(self, what: Any) -> None:
        if self._is_ours(what):
            self.depth -= 1
            if self.depth == 0:
                types.Function.get_call_type = self.resolving
                if self.collects:
                    gc.enable()

    def _is_ours(self, what: Any) -> bool:
        return str(what.data["dispatcher"].py_func.__module__).startswith(f"{OURS}.")


def _remembered(get_call_type: Callable[..., Any]) -> Callable[..., Any]:
    """Return numba's search for the signature of an operation, which asks each operation's templates once a kernel."""
    known: dict[Any, Any] = {}

    def get(function: Any, context: Any, args: tuple[Any, ...], kws: Any) -> Any:
        if kws:
            return get_call_type(function, context, args, kws)
        if (function, args) not in known:
            known[function, args] = get_call_type(function, context, args, kws)
        return known[function, args]

    return get


event.register("numba:compile", _Quicker())


def compiled(function: Any = None, *, step: bool = False) -> Any:
    """Compile a function; the machine code is kept where a folder can be written.

    The function makes no arrays: code that does takes long to compile. So nothing counts who refers to a view of an array,
    which takes longer than some of these functions. step: whether only compiled functions call it: a fourth less to compile.
    """
    if function is None:
        return partial(compiled, step=step)
    options = {
        "nogil": True,
        "error_model": "numpy",
        "no_cpython_wrapper": step,
        "no_cfunc_wrapper": True,
        **NO_COUNTING,
    }
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written
        return numba.njit(**options)(function)
