"""What readers say of checksums: where there are some, a flipped bit never changes a number; else it does, unnoticed."""

from __future__ import annotations

import random

import h5py
import nibabel
import numcodecs
import numpy as np
import pytest
import scipy.io
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored

P = (np.random.default_rng(0).integers(0, 2000, (24, 24, 3)) / 2000).astype("f4")


def in_zarr(compressor, shards=None, version=3):
    def write(folder):
        group = zarr.open_group(folder / "p.zarr", mode="w", zarr_format=version)
        layout = {"chunks": (8, 8, 3), "shards": shards, "compressors": compressor}
        group.create_array("p", shape=P.shape, dtype=P.dtype, **layout)[...] = P
        return folder / "p.zarr", "p"

    return write


def in_zip(folder):
    with zarr.storage.ZipStore(folder / "p.zarr.zip", mode="w") as store:
        zarr.create_array(store, name="p", data=P, chunks=(8, 8, 3), compressors=None)
    return folder / "p.zarr.zip", "p"


def in_hdf5(**words):
    def write(folder):
        with h5py.File(folder / "p.h5", "w") as file:
            file.create_dataset("p", data=P, chunks=(8, 8, 3), **words)
        return folder / "p.h5", "p"

    return write


def in_file(name, save):
    def write(folder):
        save(folder / name)
        return folder / name, "p" if name.endswith(("npz", "mat")) else ""

    return write


FORMATS = {
    "zstd": (in_zarr(ZstdCodec()), False),
    "blosc": (in_zarr(BloscCodec()), False),
    "crc32c": (in_zarr(Crc32cCodec()), False),  # not verified where a part of a chunk is decoded
    "zstd with checksum": (in_zarr(ZstdCodec(checksum=True)), True),
    "sharded": (in_zarr(ZstdCodec(checksum=True), (24, 24, 3)), True),
    "gzip": (in_zarr(GzipCodec()), True),
    "bz2": (in_zarr({"name": "numcodecs.bz2", "configuration": {"level": 1}}), True),
    "version 2 zlib": (in_zarr(numcodecs.Zlib(), version=2), True),
    "version 2 zstd": (in_zarr(numcodecs.Zstd(), version=2), False),
    "zip": (in_zip, True),
    "hdf5": (in_hdf5(), False),
    "hdf5 gzip": (in_hdf5(compression="gzip"), True),
    "hdf5 fletcher32": (in_hdf5(fletcher32=True), True),
    "nii.gz": (in_file("p.nii.gz", lambda path: nibabel.save(nibabel.Nifti1Image(P, np.eye(4)), path)), True),
    "npz": (in_file("p.npz", lambda path: np.savez(path, p=P)), True),
    "npy": (in_file("p.npy", lambda path: np.save(path, P)), False),
    "mat": (in_file("p.mat", lambda path: scipy.io.savemat(path, {"p": P}, do_compression=True)), True),
    "mat without compression": (in_file("p.mat", lambda path: scipy.io.savemat(path, {"p": P})), False),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # codecs that are not in the specification
@pytest.mark.parametrize("kind", FORMATS)
def test_a_flipped_bit_is_told_where_the_reader_says_so(tmp_path, kind):
    write, expected = FORMATS[kind]
    store, array = write(tmp_path)
    assert open_stored(str(store), array, "p", None).has_checksum == expected
    whole = [path for path in store.rglob("*") if path.is_file() and path.name[0] not in ".z"] or [store]
    draw, unnoticed = random.Random(0), 0
    for _ in range(10):
        file = draw.choice(whole)
        before = file.read_bytes()
        bit = draw.randrange(0 if store.is_dir() else 8 * len(before) // 2, 8 * len(before) * 9 // 10)
        changed = bytearray(before)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        for part in (np.s_[:, :, :], np.s_[1:7, 2:5, :]):
            try:
                found = open_stored(str(store), array, "p", None)[part]
            except InputError:
                continue
            unnoticed += found.tobytes() != P[part].tobytes()
        file.write_bytes(before)
    assert (unnoticed == 0) == (expected or kind == "crc32c"), unnoticed
