"""Opening files without the warnings of other libraries, safe beside threads that compile."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

_ALONE = threading.RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings inside this context, which one thread at a time enters.

    Python keeps for the whole process what becomes of warnings. Two threads that change it at once may leave it changed,
    and then a later warning of ours is lost. numba changes it while it compiles, so its lock is taken too.
    """
    numba = sys.modules.get("numba.core.compiler_lock")
    with numba.global_compiler_lock if numba else nullcontext(), _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
