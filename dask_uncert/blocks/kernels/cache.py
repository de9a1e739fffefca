"""Where numba keeps compiled code: beside the package, in the user's cache, or in a temporary folder."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


class NoCacheWarning(UserWarning):
    """Compiled code cannot be kept for the next run."""


def ensure_cache() -> None:
    """Make a temporary folder for compiled code if numba would find none that can be written, and warn.

    Processes that this one starts use the same folder, which is removed when this process ends.
    """
    if has_place():
        return
    try:
        folder = tempfile.mkdtemp(prefix="dask-uncert-")
    except OSError:
        kept = "not kept at all"
    else:
        kept = f"kept in {folder} until the run ends"
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[VARIABLE] = folder
    warnings.warn(
        f"compiled code is {kept}, because neither the package's folder nor a home can be written; every run compiles it "
        f"again. Set {VARIABLE} to a folder that can be written.",
        NoCacheWarning,
        stacklevel=2,
    )


def has_place() -> bool:
    """Return whether compiled code can be kept."""
    return bool(os.environ.get(VARIABLE)) or any(map(_can_write, _usual_folders()))


def is_kept(kernels: str = "") -> bool:
    """Return whether this machine keeps compiled code of this version, of kernels whose full names start so."""
    folder = Path(__file__).parent
    source = max(file.stat().st_mtime for file in folder.glob("*.py"))
    chosen = os.environ.get(VARIABLE)
    beside = [] if chosen else folder.glob(f"__pycache__/{kernels}*.nbi")
    elsewhere = Path(chosen or _usual_folders()[1]).glob(f"{folder.name}_*/{kernels}*.nbi")
    return any(file.stat().st_mtime > source for file in (*beside, *elsewhere))


def _usual_folders() -> tuple[Path, ...]:
    """Return the folders that numba tries."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(__file__).parent / "__pycache__", Path(user) / "numba"


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
