"""Evaluations of every kind, saved and loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.stores.counts import read_counts, write_counts
from dask_uncert.summaries.evaluation import Evaluation, from_plain
from dask_uncert.summaries.regression import RegressionEvaluation, regression_from_plain
from dask_uncert.summaries.summary import Summary

READERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Evaluation | RegressionEvaluation]] = {
    "Evaluation": from_plain,
    "RegressionEvaluation": regression_from_plain,
}
"""By kind of Summary: how it is made of its frame and arrays."""


def save(evaluation: Summary, path: str | Path) -> None:
    """Write an Evaluation of any kind to a Zarr group; equal ones give equal bytes.

    Raises InputError where something else than an Evaluation is there already.

    >>> import tempfile, dask_uncert as du
    >>> one = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     du.save(one, folder + "/one.zarr")
    ...     du.load(folder + "/one.zarr") == one
    True
    """
    if Path(path).exists():
        read_counts(str(path))
    write_counts(str(path), evaluation.frame(), evaluation.arrays())


def load(path: str | Path) -> Evaluation | RegressionEvaluation:
    """The Evaluation that `save` or a job wrote, of its own kind: its Zarr group, or the output folder with it.

    Raises InputError where there is none.

    >>> import dask_uncert as du
    >>> du.load("nothing.zarr")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no summary at nothing.zarr ...
    """
    folder = Path(path)
    store = folder / "summary.zarr" if (folder / "summary.zarr").exists() else folder
    frame, arrays = read_counts(str(store))
    try:
        return READERS[frame["kind"]](frame, arrays)
    except (KeyError, TypeError) as error:
        raise InputError(f"{store} is damaged or of another version: {error}.") from error
