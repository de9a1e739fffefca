"""Reading GeoTIFF, cloud-optimised or not; the one place that knows rasterio.

Windows are read by GDAL's GTiff driver and no other: a file that only calls itself .tif is refused. Overviews are
never read.
"""

from __future__ import annotations

import logging
import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.enums import Interleaving, MaskFlags
from rasterio.windows import Window

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding, Role
from dask_uncert.io.file_cache import refusal
from dask_uncert.io.geometry import Geometry, canonical_crs, geometry_of
from dask_uncert.io.indexing import file_fingerprint, one_array, spans_of
from dask_uncert.io.paths import file_system, is_remote

logging.getLogger("rasterio").addHandler(logging.NullHandler())  # what GDAL has to say is in our own errors
LARGEST_BLOCK = 1 << 30  # bytes of a tile or strip, all bands together


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> StoredGeoTiff:
    """A raster by its address; see `StoredGeoTiff`."""
    one_array(store, array, what)
    return StoredGeoTiff(store, what, dims)


class StoredGeoTiff:
    """The bands of a GeoTIFF, opened lazily in whichever thread slices it; it pickles as its address.

    Dimensions are band, y and x; a single band has none, unless `dims` names three. Numbers are as stored; nodata,
    scale and offset of the bands, which must be the same of all, are in `decoding`.
    """

    def __init__(self, store: str, what: str, dims: Sequence[str] | None = None) -> None:
        """what: the input's name, for messages. Raises InputError for a file that cannot be used."""
        self.store, self.array, self.what = store, "", what
        self._local = threading.local()
        with self._reading() as file:
            self._flat = file.count == 1 and (dims is None or len(dims) == 2)
            bands = () if self._flat else (file.count,)
            self.shape: tuple[int, ...] = (*bands, file.height, file.width)
            self.ndim = len(self.shape)
            self.dtype = np.dtype(_same(file.dtypes, "data types", what, store))
            self.dims = (*(() if self._flat else ("band",)), "y", "x")
            rows, columns = file.block_shapes[0]
            self.chunks: tuple[int, ...] = (*bands, min(rows, file.height), min(columns, file.width))
            self.decoding = _decoding(file, what, store)
            self._affine, self._crs, self._unit = _lies(file)
            self.attributes: dict[str, Any] = (
                {"band_names": list(file.descriptions)} if any(file.descriptions) else {}
            )
            _check(self, file)
        self.held = 0

    def __getitem__(self, region: Any) -> NDArray[Any]:
        spans, rest = spans_of(region, self.shape)
        (y, y_end), (x, x_end) = spans[-2:]
        band, band_end = (0, 1) if self._flat else spans[0]
        shape = (band_end - band, y_end - y, x_end - x)
        if 0 in shape:
            found = np.empty(shape, self.dtype)
        else:
            with self._reading() as file:
                found = file.read(range(band + 1, band_end + 1), window=Window(x, y, x_end - x, y_end - y))
        return np.asarray((found[0] if self._flat else found)[rest])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()

    def __repr__(self) -> str:
        return self.store

    def absent_chunks(self) -> list[tuple[int, ...]]:
        """Tiles or strips of a sparse file that were never written; GDAL reads them as nodata or 0."""
        rows, columns = (-(-n // c) for n, c in zip(self.shape[-2:], self.chunks[-2:], strict=True))
        found: list[tuple[int, ...]] = []
        with self._reading() as file:
            bands = range(1, 2 if file.interleaving == Interleaving.pixel else file.count + 1)
            for i in range(rows):
                for j in range(columns):
                    tag = f"BLOCK_OFFSET_{j}_{i}"
                    if any(file.get_tag_item(tag, "TIFF", bidx=band) is None for band in bands):
                        found.append((i, j) if self._flat else (0, i, j))
        return found

    def fingerprint(self) -> str | None:
        """Changes whenever a local file is written; None for remote ones."""
        return file_fingerprint(self.store, self.what)

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where pixel centres lie, under the names the dimensions go by; None where the file does not say."""
        if self._affine is None:
            return None
        return geometry_of(self._affine, tuple(dims[-2:]), self._crs, self._unit)

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside it; its affine says where it lies."""
        return {}

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """The thread's own handle: GDAL's may not be shared."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a file has no georeference, which `geometry` says
                if getattr(self._local, "file", None) is None:
                    self._local.file = _opened(self.store)
                yield self._local.file
        except InputError:
            raise
        except Exception as error:  # of GDAL and of remote file systems, many kinds
            cause = error.__cause__
            raise refusal(self.store, self.what, cause if isinstance(cause, Exception) else error) from None


def _opened(store: str) -> Any:
    if not is_remote(store):
        with open(store, "rb"):  # else GDAL would word what is missing or forbidden
            pass
        return rasterio.open(store, driver="GTiff")
    system, path = file_system(store)
    return rasterio.open(path, driver="GTiff", opener=system)


def _same(values: Sequence[Any], kind: str, what: str, store: str) -> Any:
    """The value that all bands have; NaN equals itself here."""
    if len({"nan" if value != value else value for value in values}) > 1:
        listed = ", ".join(map(str, dict.fromkeys(values)))
        raise InputError(
            f"{what}: the bands of {store} have several {kind}: {listed}. Write them alike, or each to a file."
        )
    return values[0]


def _decoding(file: Any, what: str, store: str) -> Decoding:
    nodata = _same(file.nodatavals, "nodata values", what, store)
    scale = float(_same(file.scales, "scales", what, store))
    offset = float(_same(file.offsets, "offsets", what, store))
    return Decoding(scale, offset, () if nodata is None else (float(nodata),))


def _lies(file: Any) -> tuple[NDArray[np.float64] | None, str | None, str]:
    """Column, row and origin of pixel centres (3, 3) with rows x, y, z; the reference system; its unit."""
    t = file.transform
    crs = file.crs or None
    if t.is_identity and crs is None:
        return None, None, "1"
    affine = np.zeros((3, 3))
    affine[0] = t.b, t.a, t.c + (t.a + t.b) / 2
    affine[1] = t.e, t.d, t.f + (t.d + t.e) / 2
    if crs is None:
        return affine, None, "1"
    unit = (
        "degree"
        if crs.is_geographic
        else {"metre": "m", "meter": "m"}.get(crs.linear_units, crs.linear_units)
    )
    return affine, canonical_crs(crs.to_wkt()), unit


def _check(one: StoredGeoTiff, file: Any) -> None:
    """Refuse what would be read as something else than it is."""
    if one.dtype.kind not in "iuf":
        raise InputError(f"{one.what}: {one.store} holds {one.dtype} numbers; expected real ones.")
    # GDAL takes the fourth of four bytes for an alpha band unless told otherwise, so that is a band like others.
    if any(MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags for flags in file.mask_flag_enums):
        raise InputError(
            f"{one.what}: {one.store} has a mask beside its bands. Write what is missing as nodata, or "
            f"give it as the input `mask`."
        )
    nbytes = one.dtype.itemsize * math.prod(one.chunks)
    if nbytes > LARGEST_BLOCK:
        raise InputError(
            f"{one.what}: a tile or strip of {one.store} has {nbytes / 2**30:.1f} GiB, so none of it can be read "
            f"without the whole. Write it with smaller tiles."
        )
