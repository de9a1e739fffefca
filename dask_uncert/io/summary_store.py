"""Summaries in Zarr: the frame and the counts, and Evaluations saved and loaded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import zarr

from dask_uncert.errors import InputError, exception_text
from dask_uncert.formulas.typing import Counts
from dask_uncert.io.format_version import check_format, format_attributes
from dask_uncert.io.owned_folder import check_saved
from dask_uncert.io.paths import AnyPath, as_path
from dask_uncert.io.readers.zarr import opening, writable_store
from dask_uncert.summaries.registry import AnyEvaluation, evaluation_from_plain
from dask_uncert.summaries.summary import Summary

SUMMARY = "summary"


def save(evaluation: Summary, path: str | AnyPath) -> None:
    """Write an Evaluation of any kind to a Zarr group; equal Evaluations give equal bytes.

    Parameters
    ----------
    evaluation : Evaluation or RegressionEvaluation
        What `evaluate`, `evaluate_regression` or a sum of Evaluations returned.
    path : str or path
        Folder or URL of the group. An Evaluation saved there before is replaced.

    Raises
    ------
    InputError
        If something other than an Evaluation is there or beside it in the group, or nothing can be written there.

    Examples
    --------
    >>> import tempfile, dask_uncert as du
    >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     du.save(evaluation, folder + "/evaluation.zarr")
    ...     du.load(folder + "/evaluation.zarr") == evaluation
    True
    """
    if as_path(path).exists():
        read_frame(str(path))
        check_saved(as_path(path))
    try:
        write_counts(str(path), evaluation.frame(), evaluation.arrays())
    except (FileNotFoundError, NotADirectoryError) as error:  # a full disk is an OSError, and no wrong request
        raise InputError(f"{path} cannot be written: {error}.") from None


def load(path: str | AnyPath) -> AnyEvaluation:
    """Read the Evaluation that `save` or a job wrote.

    Parameters
    ----------
    path : str or path
        Folder or URL: the Zarr group of `save`, or the output folder of a job.

    Returns
    -------
    Evaluation or RegressionEvaluation
        The kind that was saved.

    Raises
    ------
    InputError
        If there is none, if it is damaged, or if another version of dask_uncert wrote it in another format.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.load("nothing.zarr")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no summary at nothing.zarr ...
    """
    folder = as_path(path)
    store = folder / "summary.zarr" if (folder / "summary.zarr").exists() else folder
    frame, arrays = read_counts(str(store))
    try:
        return evaluation_from_plain(frame, arrays)
    except (KeyError, TypeError) as error:
        raise InputError(f"{store} is damaged: {exception_text(error)}. Compute it again.") from error


def write_counts(store: str, frame: Mapping[str, Any], arrays: Iterable[tuple[str, tuple[str, ...], Counts]]) -> None:
    """Write a Summary's frame and arrays under `total/`; the same Summary gives the same bytes."""
    with opening(store, to_write=True):
        root = zarr.open_group(writable_store(store), mode="w", attributes=format_attributes(SUMMARY))
        total = root.create_group("total", attributes={"frame": json.dumps(frame)})
        for path, dims, value in arrays:
            array = total.create_array(
                path, shape=value.shape, chunks=tuple(max(n, 1) for n in value.shape), dtype="int64",
                dimension_names=dims, fill_value=0,
            )  # fmt: skip
            array[...] = value


def read_counts(store: str) -> tuple[dict[str, Any], dict[str, Counts]]:
    """Return the frame and the arrays by path that `write_counts` wrote; raise InputError if they are not there."""
    total, frame = _read_total(store)
    with opening(store):
        members = total.members(max_depth=None)
        return frame, {path: np.asarray(m[...]) for path, m in members if isinstance(m, zarr.Array)}


def read_frame(store: str) -> dict[str, Any]:
    """Return the frame that `write_counts` wrote; raise InputError if there is none."""
    return _read_total(store)[1]


def _read_total(store: str) -> tuple[zarr.Group, dict[str, Any]]:
    try:
        with opening(store):
            root = zarr.open_group(writable_store(store), mode="r")
            attributes = dict(root.attrs)
    except Exception as error:
        raise InputError(f"there is no summary at {store} ({exception_text(error)}).") from error
    check_format(attributes, SUMMARY, store)
    with opening(store):
        total = root["total"]
    assert isinstance(total, zarr.Group)
    return total, json.loads(str(total.attrs["frame"]))
