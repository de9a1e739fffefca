"""Opening an input by its address, in any of the formats.

Each format has a reader in `readers/`; a reader and its library are imported when the first such input is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.file_cache import file_name
from dask_uncert.io.paths import check_no_password, check_not_special, is_remote
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.retries import Retried, with_retries

Reader = Callable[[str, str, str, Sequence[str] | None], StoredArray]
"""Opens (store, array, name of the input, dims) without reading values."""


class Format(NamedTuple):
    """A file format: its name, the endings of its files, and the pip extra that its reader needs."""

    name: str
    endings: tuple[str, ...]
    extra: str | None = None


FORMATS = (
    Format("NIfTI", (".nii", ".nii.gz")),
    Format("GeoTIFF", (".tif", ".tiff"), "geotiff"),
    Format("NetCDF or HDF5", (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5"), "netcdf"),
    Format("ENVI", (".hdr", ".img", ".dat", ".bil", ".bip", ".bsq"), "envi"),
    Format("NumPy", (".npy", ".npz")),
    Format("MATLAB", (".mat",)),
)
ZARR = Format("Zarr", ())
"""The format of stores with any other name."""


def reader_of(name: str) -> Reader:
    """Import the reader of a format."""
    if name == "NIfTI":
        from dask_uncert.io.readers.nifti import NiftiArray

        return NiftiArray
    if name == "GeoTIFF":
        from dask_uncert.io.readers.geotiff import GeoTiffArray

        return GeoTiffArray
    if name == "NetCDF or HDF5":
        from dask_uncert.io.readers.netcdf4 import open_netcdf

        return open_netcdf
    if name == "ENVI":
        from dask_uncert.io.readers.envi import EnviArray

        return EnviArray
    if name == "NumPy":
        from dask_uncert.io.readers.numpy import NumpyArray

        return NumpyArray
    if name == "MATLAB":
        from dask_uncert.io.readers.matlab import open_matlab

        return open_matlab
    from dask_uncert.io.readers.zarr import ZarrArray

    return ZarrArray


def format_of(store: str) -> Format:
    """Return the format by the store's name."""
    return next((form for form in FORMATS if file_name(store).endswith(form.endings)), ZARR)


def readable_formats() -> str:
    """Return the formats but for Zarr, with the endings of their files, as text."""
    return ", ".join(f"{form.name} ({', '.join(form.endings)})" for form in FORMATS)


def open_stored(store: str, array: str, name: str, dims: Sequence[str] | None = None) -> StoredArray:
    """Open an input without reading its values.

    name: the input's, for messages. dims: names declared for its dimensions. Raises InputError for an input that is missing or cannot be used.
    """
    check_no_password(store)
    check_not_special(store, f"{name}: ")
    form = format_of(store)
    try:
        reader = reader_of(form.name)
    except ModuleNotFoundError as error:
        if form.extra is None or (error.name or "").startswith("dask_uncert"):
            raise
        raise InputError(
            f"{name}: reading {form.name} files such as {store} needs {error.name}, which is not installed. Run "
            f"`python -m pip install 'dask-uncert[{form.extra}]'`."
        ) from None
    try:
        opened = with_retries(lambda: reader(store, array, name, dims), is_remote(store))
    except InputError as error:
        if form is ZARR and isinstance(error.__cause__, FileNotFoundError):  # neither a group nor an array is there
            raise InputError(
                f"{name}: {store} is neither a Zarr store nor a file of another format that can be read: "
                f"{readable_formats()}. Convert it to one of these."
            ) from error
        raise
    except Exception as error:  # libraries that trust damaged metadata raise many kinds
        raise InputError(
            f"{name}: {store}{f':{array}' if array else ''} is damaged, or its kind is not supported "
            f"({exception_text(error)})."
        ) from error
    retried: Any = Retried(opened)
    return cast(StoredArray, retried)


def arrays_in(store: str, name: str) -> list[str]:
    """Return the names of the arrays of a Zarr group or an `.npz`; [""] for a file or store that is one array.

    name: the input's, for messages. Raises InputError for a store that cannot be read.
    """
    form = format_of(store)
    if form is ZARR:
        from dask_uncert.io.readers.zarr import array_names

        return array_names(store, name)
    if form.name == "NumPy":
        from dask_uncert.io.readers.numpy import array_names as members

        return members(store, name)
    return [""]
