"""What reading through a reader costs beside the library's own: `python tests/benchmarks/readers_against_libraries.py`.

Writes one float32 cube of 16 classes in every format, reads it block by block through `open_stored` and by the format's
library, in turns, and prints the ratio of the median processor times; and how often a `.nii.gz` was decompressed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import nibabel
import numpy as np
import rasterio
import scipy.io
import spectral.io.envi as envi
import zarr
from rasterio.windows import Window

from dask_uncert.io import file_cache
from dask_uncert.io.open import open_stored
from dask_uncert.io.readers.zarr import FAST

SIDE, BLOCK, CLASSES, TURNS = 1024, 256, 16, 5


def blocks() -> Iterator[tuple[slice, slice]]:
    """Regions of the grid."""
    for y in range(0, SIDE, BLOCK):
        for x in range(0, SIDE, BLOCK):
            yield slice(y, y + BLOCK), slice(x, x + BLOCK)


def formats(
    folder: Path, p: Any
) -> Iterator[tuple[str, str, str, int, Callable[[], Any], Callable[[Any, Any, Any], Any]]]:
    """Name, file, array, axis of classes, how the library opens it and how it reads a block."""
    with zarr.config.set(FAST):
        array = zarr.open_group(folder / "a.zarr", mode="w").create_array(
            "p", shape=p.shape, dtype="f4", chunks=(128, 128, 16)
        )
        array[...] = p
        yield (
            "zarr",
            "a.zarr",
            "p",
            -1,
            lambda: zarr.open_group(folder / "a.zarr", mode="r")["p"],
            lambda a, y, x: a[y, x],
        )
    profile = {
        "driver": "GTiff",
        "count": 16,
        "height": SIDE,
        "width": SIDE,
        "dtype": "float32",
        "interleave": "pixel",
    }
    with rasterio.open(
        folder / "a.tif", "w", tiled=True, blockxsize=128, blockysize=128, compress="deflate", **profile
    ) as file:
        file.write(np.moveaxis(p, -1, 0))
    yield (
        "geotiff", "a.tif", "", 0, lambda: rasterio.open(folder / "a.tif"),
        lambda a, y, x: a.read(window=Window(x.start, y.start, BLOCK, BLOCK)),
    )  # fmt: skip
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("p", data=p, chunks=(128, 128, 16), compression="gzip", compression_opts=1)
    yield "hdf5", "a.h5", "p", -1, lambda: h5py.File(folder / "a.h5")["p"], lambda a, y, x: a[y, x]
    envi.save_image(str(folder / "a.hdr"), p, interleave="bip", dtype=np.float32, force=True, ext="img")
    yield (
        "envi", "a.hdr", "", -1, lambda: envi.open(str(folder / "a.hdr"), str(folder / "a.img")).open_memmap(),
        lambda a, y, x: np.array(a[y, x]),
    )  # fmt: skip
    np.save(folder / "a.npy", p)
    yield (
        "npy",
        "a.npy",
        "",
        -1,
        lambda: np.load(folder / "a.npy", mmap_mode="r"),
        lambda a, y, x: np.array(a[y, x]),
    )
    nibabel.save(nibabel.Nifti1Image(p, np.eye(4)), folder / "a.nii")
    nii: Any = nibabel.load(folder / "a.nii")
    yield "nifti", "a.nii", "", -1, lambda: nii.dataobj, lambda a, y, x: np.asarray(a[y, x])
    scipy.io.savemat(folder / "a.mat", {"p": p})
    yield (
        "matlab",
        "a.mat",
        "p",
        -1,
        lambda: scipy.io.loadmat(folder / "a.mat")["p"],
        lambda a, y, x: np.array(a[y, x]),
    )


def timed(work: Callable[[], Any]) -> float:
    """Processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print a line a format."""
    p = np.random.default_rng(0).dirichlet(np.ones(CLASSES), (SIDE, SIDE)).astype("f4")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, file, array, axis, open_it, read in formats(folder, p):

            def ours(file: str = file, array: str = array, axis: int = axis) -> None:
                file_cache._CACHE.clear()
                stored = open_stored(str(folder / file), array, "p", list("abc"))
                for y, x in blocks():
                    np.array(stored[(slice(None), y, x) if axis == 0 else (y, x)])

            def theirs(open_it: Callable[[], Any] = open_it, read: Callable[[Any, Any, Any], Any] = read) -> None:
                opened = open_it()
                for y, x in blocks():
                    read(opened, y, x)

            both = [(timed(ours), timed(theirs)) for _ in range(TURNS)]
            mine, own = (median(one) for one in zip(*both, strict=True))
            print(f"{name:8} {mine:.3f} s, the library alone {own:.3f} s: {mine / own:.2f}")
        nibabel.save(nibabel.Nifti1Image(p[:256, :256], np.eye(4)), folder / "a.nii.gz")
        reads = []
        kept = file_cache.read_to_end
        file_cache.read_to_end = lambda *given: reads.append(1) or kept(*given)
        from dask_uncert.io.readers import nifti

        nifti.read_to_end = file_cache.read_to_end
        stored = open_stored(str(folder / "a.nii.gz"), "", "p", list("abc"))
        for y in range(0, 256, 64):
            stored[y : y + 64]
        print(f"a .nii.gz read in 4 blocks was decompressed {len(reads)} time(s)")


if __name__ == "__main__":
    main()
