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

    Python has one set of warning filters for the whole process. If two threads change it at once, it may stay changed,
    and a later warning of ours is lost. numba changes it while it compiles, so this takes numba's lock too.
    """
    numba = sys.modules.get("numba.core.compiler_lock")
    with numba.global_compiler_lock if numba else nullcontext(), _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
