"""Opening an input by its address, in whichever format it is.

Each format has a reader in `readers/`; a reader and its library are imported when the first such input is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.file_cache import file_name
from dask_uncert.io.paths import check_no_password, is_remote
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.retries import Retried, with_retries

Reader = Callable[[str, str, str, Sequence[str] | None], StoredArray]
"""Opens (store, array, name of the input, dims) without reading values."""


class Format(NamedTuple):
    """A file format: its name, the endings of its files, its reader (imported when first used) and pip extra."""

    name: str
    endings: tuple[str, ...]
    reader: Callable[[], Reader]
    extra: str | None = None


def _nifti() -> Reader:
    from dask_uncert.io.readers.nifti import NiftiArray

    return NiftiArray


def _geotiff() -> Reader:
    from dask_uncert.io.readers.geotiff import GeoTiffArray

    return GeoTiffArray


def _netcdf() -> Reader:
    from dask_uncert.io.readers.netcdf4 import open_netcdf

    return open_netcdf


def _envi() -> Reader:
    from dask_uncert.io.readers.envi import EnviArray

    return EnviArray


def _numpy() -> Reader:
    from dask_uncert.io.readers.numpy import NumpyArray

    return NumpyArray


def _matlab() -> Reader:
    from dask_uncert.io.readers.matlab import open_matlab

    return open_matlab


def _zarr() -> Reader:
    from dask_uncert.io.readers.zarr import ZarrArray

    return ZarrArray


FORMATS = (
    Format("NIfTI", (".nii", ".nii.gz"), _nifti),
    Format("GeoTIFF", (".tif", ".tiff"), _geotiff, "geotiff"),
    Format("NetCDF or HDF5", (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5"), _netcdf, "netcdf"),
    Format("ENVI", (".hdr", ".img", ".dat", ".bil", ".bip", ".bsq"), _envi, "envi"),
    Format("NumPy", (".npy", ".npz"), _numpy),
    Format("MATLAB", (".mat",), _matlab),
)
ZARR = Format("Zarr", (), _zarr)
"""The format of stores with any other name."""


def format_of(store: str) -> Format:
    """Return the format by the store's name."""
    return next((form for form in FORMATS if file_name(store).endswith(form.endings)), ZARR)


def open_stored(store: str, array: str, name: str, dims: Sequence[str] | None = None) -> StoredArray:
    """Open an input without reading its values; name: the input's, for messages.

    dims: names declared for its dimensions. Raises InputError for an input that is missing or cannot be used.
    """
    check_no_password(store)
    form = format_of(store)
    try:
        reader = form.reader()
    except ModuleNotFoundError as error:
        if form.extra is None or (error.name or "").startswith("dask_uncert"):
            raise
        raise InputError(
            f"{name}: reading {form.name} files such as {store} needs {error.name}, which is not installed. Run "
            f"`python -m pip install 'dask-uncert[{form.extra}]'`."
        ) from None
    try:
        opened = with_retries(lambda: reader(store, array, name, dims), is_remote(store))
    except InputError:
        raise
    except Exception as error:  # libraries that trust damaged metadata raise many kinds
        raise InputError(
            f"{name}: {store}{f':{array}' if array else ''} is damaged, or its kind is not supported "
            f"({exception_text(error)})."
        ) from error
    retried: Any = Retried(opened)
    return cast(StoredArray, retried)
