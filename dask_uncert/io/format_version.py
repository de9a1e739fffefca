"""The format version that saved data carries and that is checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dask_uncert.errors import InputError

FORMAT = 6
"""Version of everything we save: increase it when older data can no longer be read, or would mean something else."""


def format_attributes(kind: str) -> dict[str, Any]:
    """Return the attributes of a Zarr group that holds this kind of data."""
    return {"dask_uncert": kind, "format": FORMAT}


def check_format(attributes: Mapping[str, Any], kind: str, path: object) -> None:
    """Raise InputError if a group holds something else, or was written in another format version."""
    if attributes.get("dask_uncert") != kind:
        raise InputError(
            f"{path} is a Zarr group, but holds no {kind} of dask_uncert. Name the output folder of a job, or a group that "
            f"`save` wrote."
        )
    if attributes.get("format") != FORMAT:
        raise InputError(
            f"{path} was written by another version of dask_uncert: it has format {attributes.get('format')}, this "
            f"version reads format {FORMAT}. Compute it again, or install the version that wrote it."
        )
