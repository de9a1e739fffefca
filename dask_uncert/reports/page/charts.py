"""The page's charts as text, kept in the user's cache: making them takes longer than drawing all figures of a page."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dask_uncert.reports.figures import style
from dask_uncert.reports.page import payload

MADE_BY = (Path(__file__).with_name("bokeh_charts.py"), Path(style.__file__), Path(payload.__file__))


def chart_texts() -> dict[str, Any]:
    """Return the script of BokehJS as `script`, the charts as `charts`, and the legends and rows beside them.

    They depend on the version of bokeh and on this package's code only. Without a cache they are made each time.
    """
    parts = [version("bokeh").encode(), *(path.read_bytes() for path in MADE_BY)]
    file = _folder() / f"charts-{hashlib.blake2b(b'|'.join(parts), digest_size=12).hexdigest()}.json"
    with suppress(OSError, ValueError):
        text, _, digest = file.read_text(encoding="utf-8").rpartition("\n")
        if digest == _digest(text):  # a damaged file is made again
            return dict(json.loads(text))
    from dask_uncert.reports.page import bokeh_charts  # importing bokeh takes a second

    made = {"script": bokeh_charts.bokeh_script(), "charts": bokeh_charts.charts(), **bokeh_charts.CONTEXT}
    text = json.dumps(made)
    with suppress(OSError):
        _write(file, f"{text}\n{_digest(text)}")
    return dict(json.loads(text))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dask-uncert")


def _write(file: Path, text: str) -> None:
    """Write a file at once, so that no other process reads half of it."""
    if not file.is_absolute():
        return  # there is no home
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as part:
        part.write(text)
    os.replace(part.name, file)
