"""An input opened by its address, whatever it is stored as.

Each reader is one file behind `Stored`; its library is imported when the first such input is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding, Role
from dask_uncert.io.file_cache import file_name
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.paths import check_no_password, is_remote
from dask_uncert.io.retries import Retried, persistently


class Stored(Protocol):
    """An opened input: it knows what its header says, reads what is sliced, and pickles as its address.

    Slicing gives numbers as they are stored, in this machine's byte order; nothing is scaled or masked.
    dims: as stored, None where they are not named. decoding: what the file says that stored numbers mean.
    absent_chunks: which chunks, by their numbers along the axes, the store does not hold though it should; reading
    gives the fill value there. held: bytes that stay in memory while it is read.
    """

    store: str
    array: str
    shape: tuple[int, ...]
    ndim: int
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    dims: tuple[str, ...] | None
    decoding: Decoding
    held: int

    @property
    def attributes(self) -> dict[str, Any]: ...

    def __getitem__(self, region: Any) -> NDArray[Any]: ...

    def absent_chunks(self) -> Sequence[tuple[int, ...]]:
        """Chunks that are not there; () where a file has no chunks that can be missing."""

    def fingerprint(self) -> str | None:
        """Changes whenever the input is written; None where that cannot be told."""

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where it lies, under the names its dimensions go by; None where it does not say."""

    def coordinates(self, dims: Sequence[str]) -> dict[str, tuple[NDArray[Any], Mapping[str, Any]]]:
        """One-dimensional coordinates that stand beside it, with their attributes."""


Reader = Callable[[str, str, str, Sequence[str] | None, Role], Any]
"""Opens (store, array, name of the input, dims, role) without reading values."""


class Format(NamedTuple):
    """A file format: its name, the endings of its files, its reader (imported when first used) and pip extra."""

    name: str
    endings: tuple[str, ...]
    reader: Callable[[], Reader]
    extra: str | None = None


def _nifti() -> Reader:
    from dask_uncert.io.readers import nifti

    return nifti.opened


def _geotiff() -> Reader:
    from dask_uncert.io.readers import geotiff

    return geotiff.opened


def _netcdf() -> Reader:
    from dask_uncert.io.readers import netcdf4

    return netcdf4.opened


def _envi() -> Reader:
    from dask_uncert.io.readers import envi

    return envi.opened


def _numpy() -> Reader:
    from dask_uncert.io.readers import numpy

    return numpy.opened


def _matlab() -> Reader:
    from dask_uncert.io.readers import matlab

    return matlab.opened


def _zarr() -> Reader:
    from dask_uncert.io.readers import zarr

    return zarr.opened


FORMATS = (
    Format("NIfTI", (".nii", ".nii.gz"), _nifti),
    Format("GeoTIFF", (".tif", ".tiff"), _geotiff, "geotiff"),
    Format("NetCDF or HDF5", (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5"), _netcdf, "netcdf"),
    Format("ENVI", (".hdr", ".img", ".dat", ".bil", ".bip", ".bsq"), _envi, "envi"),
    Format("NumPy", (".npy", ".npz"), _numpy),
    Format("MATLAB", (".mat",), _matlab),
)
ZARR = Format("Zarr", (), _zarr)
"""Every other name is a Zarr store."""


def format_of(store: str) -> Format:
    """The format that the store's name says."""
    name = file_name(store)
    return next((one for one in FORMATS if name.endswith(one.endings)), ZARR)


def open_stored(
    store: str, array: str, what: str, dims: Sequence[str] | None = None, role: Role = "values"
) -> Stored:
    """Open an input without reading its values; what: its name, for messages.

    dims: names declared for its dimensions. Raises InputError for what is not there or cannot be used.
    """
    check_no_password(store)
    found = format_of(store)
    try:
        reader = found.reader()
    except ModuleNotFoundError as error:
        if found.extra is None or (error.name or "").startswith("dask_uncert"):
            raise
        raise InputError(
            f"{what}: reading {found.name} files such as {store} needs {error.name}, which is not installed. Run "
            f"`python -m pip install 'dask-uncert[{found.extra}]'`."
        ) from None
    try:
        opened: Stored = persistently(lambda: reader(store, array, what, dims, role), is_remote(store))
    except InputError:
        raise
    except Exception as error:  # of libraries at metadata that they take as they come
        text = " ".join(str(error).split())[:200]
        raise InputError(
            f"{what}: {store}{f':{array}' if array else ''} is damaged, or of a kind that is not read "
            f"({type(error).__name__}: {text})."
        ) from error
    retried: Any = Retried(opened)
    return cast(Stored, retried)
