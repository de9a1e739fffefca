"""Evaluations of every kind, saved and loaded."""

from __future__ import annotations

from dask_uncert.errors import InputError
from dask_uncert.io.paths import AnyPath, as_path
from dask_uncert.io.summary_store import read_counts, write_counts
from dask_uncert.summaries.registry import AnyEvaluation, evaluation_from_plain
from dask_uncert.summaries.summary import Summary


def save(evaluation: Summary, path: str | AnyPath) -> None:
    """Write an Evaluation of any kind to a Zarr group, at a path or a URL; equal ones give equal bytes.

    Raises InputError where something else than an Evaluation is there already.

    >>> import tempfile, dask_uncert as du
    >>> one = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     du.save(one, folder + "/one.zarr")
    ...     du.load(folder + "/one.zarr") == one
    True
    """
    if as_path(path).exists():
        read_counts(str(path))
    write_counts(str(path), evaluation.frame(), evaluation.arrays())


def load(path: str | AnyPath) -> AnyEvaluation:
    """The Evaluation that `save` or a job wrote, of its own kind: its Zarr group, or the output folder with it.

    Raises InputError where there is none.

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
        raise InputError(f"{store} is damaged or of another version: {error}.") from error
