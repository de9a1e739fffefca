"""Reading GeoTIFF, cloud-optimised or not.

Windows are read by GDAL's GTiff driver only: another kind of file with the ending .tif is refused. Overviews are never
read.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.enums import Interleaving, MaskFlags
from rasterio.windows import Window

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.file_cache import file_error
from dask_uncert.io.geometry import Geometry, geometry_of
from dask_uncert.io.indexing import spans_of
from dask_uncert.io.paths import file_system, is_remote
from dask_uncert.io.quiet import quiet
from dask_uncert.io.readers.stored_array import Label, StoredArray
from dask_uncert.io.reference_systems import canonical_crs

logging.getLogger("rasterio").addHandler(logging.NullHandler())  # our own errors repeat GDAL's
MAX_BLOCK_BYTES = 1 << 30  # bytes of a tile or strip, all bands together


class GeoTiffArray(StoredArray):
    """The bands of a GeoTIFF, opened lazily in each thread that slices it.

    Dimensions are band, y and x; a single band has no band dimension unless `dims` names three. Numbers are as stored;
    `decoding` has nodata, scale and offset, which must be the same for all bands.
    """

    HANDLE = "_local"

    def __init__(self, store: str, array: str, name: str, dims: Sequence[str] | None = None) -> None:
        super().__init__(store, array, name)
        self.check_unnamed()
        self._local: threading.local | None = None
        with self._open() as file:
            self._flat = file.count == 1 and (dims is None or len(dims) == 2)
            bands = () if self._flat else (file.count,)
            self.shape = (*bands, file.height, file.width)
            self.dtype = np.dtype(self._common(file.dtypes, "data types"))
            self.dims = ("y", "x") if self._flat else ("band", "y", "x")
            rows, columns = file.block_shapes[0]
            self.chunks = (*bands, min(rows, file.height), min(columns, file.width))
            nodata = self._common(file.nodatavals, "nodata values")
            scale, offset = self._common(file.scales, "scales"), self._common(file.offsets, "offsets")
            self.decoding = Decoding(float(scale), float(offset), () if nodata is None else (float(nodata),))
            self.fill_value = 0 if nodata is None else nodata
            self._geometry = _read_geometry(file)
            if any(file.descriptions):
                self.attributes = {"band_names": list(file.descriptions)}
            self._check(file)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        spans, rest = spans_of(region, self.shape)
        (y, y_end), (x, x_end) = spans[-2:]
        band, band_end = (0, 1) if self._flat else spans[0]
        shape = (band_end - band, y_end - y, x_end - x)
        if 0 in shape:
            values = np.empty(shape, self.dtype)
        else:
            with self._open() as file:
                values = file.read(range(band + 1, band_end + 1), window=Window(x, y, x_end - x, y_end - y))
        return np.asarray((values[0] if self._flat else values)[rest])

    def absent_chunks(self) -> list[tuple[int, ...]]:
        """Return the tiles or strips of a sparse file that were never written; GDAL reads them as nodata or 0."""
        rows, columns = (-(-n // c) for n, c in zip(self.shape[-2:], self.chunks[-2:], strict=True))
        absent: list[tuple[int, ...]] = []
        with self._open() as file:
            bands = range(1, 2 if file.interleaving == Interleaving.pixel else file.count + 1)
            for i, j in product(range(rows), range(columns)):
                tag = f"BLOCK_OFFSET_{j}_{i}"
                if any(file.get_tag_item(tag, "TIFF", bidx=band) is None for band in bands):
                    absent.append((i, j) if self._flat else (0, i, j))
        return absent

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        return None if self._geometry is None else replace(self._geometry, dims=tuple(dims[-2:]))

    def labels(self, dims: Sequence[str], axis: int) -> tuple[Label, ...] | None:
        """Return the descriptions of the bands."""
        names = self.attributes.get("band_names")
        return None if names is None or self._flat or axis else tuple(name or "" for name in names)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Yield the thread's own handle: GDAL's must not be shared."""
        try:
            with quiet():  # about a missing georeference, which `geometry` reports
                local = self._local
                if local is None:  # unpickled; another thread may do the same at this moment
                    local = self._local = threading.local()
                if getattr(local, "file", None) is None:
                    local.file = _open_file(self.store)
            yield local.file
        except InputError:
            raise
        except Exception as error:  # GDAL and remote file systems raise many kinds
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise file_error(self.store, self.name, cause) from None

    def _common(self, values: Sequence[Any], kind: str) -> Any:
        """Return the value that all bands share; here NaN equals itself."""
        if len({"nan" if value != value else value for value in values}) > 1:
            listed = ", ".join(map(str, dict.fromkeys(values)))
            raise self.error(
                f"the bands of {self.store} have several {kind}: {listed}. Write the same for all, or each band to its "
                f"own file."
            )
        return values[0]

    def _check(self, file: Any) -> None:
        self.check_numbers(self.dtype, "iuf")
        # GDAL takes the fourth of four bytes for an alpha band by default: here it is a band like the others.
        masks = [flags for flags in file.mask_flag_enums if MaskFlags.per_dataset in flags]
        if any(MaskFlags.alpha not in flags for flags in masks):
            raise self.error(
                f"{self.store} has a mask in addition to its bands. Write missing pixels as nodata, or give the mask as the "
                f"input `mask`."
            )
        nbytes = self.dtype.itemsize * math.prod(self.chunks)
        if nbytes > MAX_BLOCK_BYTES:
            raise self.error(
                f"a tile or strip of {self.store} has {nbytes / 2**30:.1f} GiB and can only be read whole. Write it with "
                f"smaller tiles."
            )


def _open_file(store: str) -> Any:
    if not is_remote(store):
        with open(store, "rb"):  # GDAL's own messages for missing or forbidden files are less clear
            pass
        return rasterio.open(store, driver="GTiff")
    system, path = file_system(store)
    return rasterio.open(path, driver="GTiff", opener=system)


def _read_geometry(file: Any) -> Geometry | None:
    """Return the positions of pixel centres by row y and column x."""
    t = file.transform
    crs = file.crs or None
    if t.is_identity and crs is None:
        return None
    affine = [[t.b, t.a, t.c + (t.a + t.b) / 2], [t.e, t.d, t.f + (t.d + t.e) / 2], [0.0, 0.0, 0.0]]
    if crs is None:
        return geometry_of(affine, ("y", "x"), None, "1")
    linear = {"metre": "m", "meter": "m"}.get(crs.linear_units, crs.linear_units)
    unit = "degree" if crs.is_geographic else linear
    return geometry_of(affine, ("y", "x"), canonical_crs(crs.to_wkt()), unit)
