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
from dask_uncert.io.integrity import CHECKED, SealedSummary, damaged, seal_summary
from dask_uncert.io.owned_folder import check_saved
from dask_uncert.io.paths import AnyPath, as_path
from dask_uncert.io.readers.zarr import opening, writable_store
from dask_uncert.summaries.registry import AnyEvaluation, evaluation_from_plain
from dask_uncert.summaries.summary import OWN_DIMS, Summary

SUMMARY = "summary"
TOTAL = "total"
SIGNED = frozenset({"limb", "power", "tally", "sum2", "sum3", "zone_number"})
"""Dimensions of arrays that also hold sums of values, in fixed point."""


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
        _open_root(str(path))
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
        evaluation = evaluation_from_plain(frame, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(store, exception_text(error)) from error
    check_counts(evaluation, str(store))
    return evaluation


def check_counts(evaluation: Summary, store: str) -> None:
    """Raise InputError, naming the array, for counts that cannot be: below 0, of another dtype, of unequal shapes."""
    sizes: dict[tuple[str, ...], int] = {}
    for path, dims, value in evaluation.arrays():
        part = path.rpartition("/")[0]
        if value.dtype != np.int64 or value.ndim != len(dims):
            raise damaged(f"{store}/{TOTAL}/{path}", f"it has the shape {value.shape} and the dtype {value.dtype}")
        for dim, size in zip(dims, value.shape, strict=True):
            if sizes.setdefault((part, dim) if dim in OWN_DIMS else (dim,), size) != size:
                raise damaged(f"{store}/{TOTAL}/{path}", f"it has the size {size} along {dim}")
        if may_not_be_negative(dims) and value.min(initial=0) < 0:
            raise damaged(f"{store}/{TOTAL}/{path}", "a count is below 0")


def may_not_be_negative(dims: Iterable[str]) -> bool:
    """Return whether an array with these dimensions holds numbers of things, and no sums of values with a sign."""
    return not SIGNED.intersection(dims)


def write_counts(store: str, frame: Mapping[str, Any], arrays: Iterable[tuple[str, tuple[str, ...], Counts]]) -> None:
    """Write a Summary's frame and arrays under `total/`; the same Summary gives the same bytes."""
    with opening(store, to_write=True):
        root = zarr.open_group(writable_store(store), mode="w", attributes=format_attributes(SUMMARY))
        total = root.create_group(TOTAL, attributes={"frame": json.dumps(frame)})
        for path, dims, value in arrays:
            array = total.create_array(
                path, shape=value.shape, chunks=tuple(max(n, 1) for n in value.shape), dtype="int64",
                dimension_names=dims, fill_value=0,
                compressors=CHECKED,
            )  # fmt: skip
            array[...] = value
    seal_summary(store)


def read_counts(store: str) -> tuple[dict[str, Any], dict[str, Counts]]:
    """Return the frame and the arrays by path that `write_counts` wrote; raise InputError if they are not there."""
    total, frame = _read_total(store)
    with opening(store):
        members = total.members(max_depth=None)
        return frame, {path: np.asarray(m[...]) for path, m in members if isinstance(m, zarr.Array)}


def read_frame(store: str) -> dict[str, Any]:
    """Return the frame that `write_counts` wrote; raise InputError if there is none."""
    return _read_total(store)[1]


def open_summary(store: str) -> tuple[zarr.Group, SealedSummary]:
    """Return the group of a summary and its digests; raise InputError if there is none, or not as it was written."""
    root = _open_root(store)
    return root, SealedSummary(store)


def _open_root(store: str) -> zarr.Group:
    try:
        with opening(store):
            root = zarr.open_group(writable_store(store), mode="r")
            attributes = dict(root.attrs)
    except Exception as error:
        raise InputError(f"there is no summary at {store} ({exception_text(error)}).") from error
    check_format(attributes, SUMMARY, store)
    return root


def _read_total(store: str) -> tuple[zarr.Group, dict[str, Any]]:
    root, digests = open_summary(store)
    digests.check(TOTAL)
    with opening(store):
        total = root[TOTAL]
    assert isinstance(total, zarr.Group)
    return total, json.loads(str(total.attrs["frame"]))
