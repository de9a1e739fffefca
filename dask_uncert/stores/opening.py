"""An input opened by its address, whatever it is stored as: a Zarr store, or a NIfTI file by its name.

Each reader is one file behind `Stored`; its library is imported when the first such input is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.orientation import Geometry
from dask_uncert.stores.whole_files import file_name

Role = Literal["labels", "probabilities", "values"]
"""What an input holds: class codes, probabilities, or anything else. It decides what a declared scaling means."""


class Stored(Protocol):
    """An opened input: it knows what its header says, reads what is sliced, and pickles as its address.

    dims: as stored, None where they are not named. scale: the factor of stored integers that the file declares
    and that is left to whoever reads. held: bytes that stay in memory while it is read.
    """

    store: str
    array: str
    shape: tuple[int, ...]
    ndim: int
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    dims: tuple[str, ...] | None
    scale: float | None
    held: int

    @property
    def attributes(self) -> dict[str, Any]: ...

    def __getitem__(self, region: Any) -> NDArray[Any]: ...

    def fingerprint(self) -> str | None:
        """Changes whenever the input is written; None where that cannot be told."""

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where it lies, under the names its dimensions go by; None where it does not say."""

    def coordinates(self, dims: Sequence[str]) -> dict[str, tuple[NDArray[Any], Mapping[str, Any]]]:
        """One-dimensional coordinates that stand beside it, with their attributes."""


def open_stored(
    store: str, array: str, what: str, dims: Sequence[str] | None = None, role: Role = "values"
) -> Stored:
    """Open an input without reading its values; what: its name, for messages.

    dims: names declared for its dimensions. Raises InputError for what is not there or cannot be used.
    """
    if file_name(store).endswith((".nii", ".nii.gz")):
        if array:
            raise InputError(f"{what}: {store} is one array; leave out `array: {array}`.")
        from dask_uncert.stores.nifti import StoredNifti

        return StoredNifti(store, what, dims, role)
    from dask_uncert.stores.zarr import StoredArray

    return StoredArray(store, array, what)
