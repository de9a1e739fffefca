"""Rebuild ``examples/data/ct_ensemble`` from the raw arrays, to the same values and the same table each time.

    python examples/data/ct_ensemble/build_ct_ensemble.py SOURCE examples/data/ct_ensemble

SOURCE holds ``rf_ensemble_f16.npz`` and ``labels.npz``, in itself or in folders of any depth; ``SOURCE.md`` in the
destination says where they come from. The digests of the arrays are checked before anything is written. What the
script does not write (``SOURCE.md``, ``LICENSE.txt``) stays.

The slices on which no member was trained lie in three runs of six. Each run is a case: the members' posteriors as
they are, and the labels, with the affine that puts the run where it was.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import shutil
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec

CLASSES = (
    *("background/other", "liver", "kidneys", "spleen", "stomach and bowel"),
    *("lungs", "bone", "muscle", "vessels"),
)
ARRAYS = {  # name: file, key, SHA-256 of the little-endian C-order bytes
    "samples": (
        "rf_ensemble_f16.npz",
        "samples",
        "ca1d7d59b30195c5a6dc675a93fab9b76b707fa3c1b191cb1bec1b661fad757c",
    ),
    "labels": ("labels.npz", "gt", "c38617e1ec9bc0a673f90ecc4cf5dbc21e3c11829191491f1221e4f1b5c25cd8"),
    "trained": (
        "labels.npz",
        "train_slice_mask",
        "53d4643dc542a8c8d8a1447b95f4434b30d2f8c3e85dd3b5f9fc7f18576ee7a4",
    ),
    "affine": ("labels.npz", "affine", "27b9b2b135b5a1265522bceb276cb940332f448717344bd427c2314b8e152187"),
}
DIMS = ("sample", "x", "y", "z", "class")
SLICES = 3  # of a chunk along z: two chunks a case
# Measured, all cases: float16 as it is 3.7 MiB; bytes shuffled first 4.3, bits shuffled 6.3.
VOTES = ZstdCodec(level=19)


def digest(values: NDArray[Any]) -> str:
    """SHA-256 of the little-endian C-order bytes."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(np.ascontiguousarray(little).tobytes()).hexdigest()


def read(source: Path, name: str) -> NDArray[Any]:
    """A raw array; refuses one that differs from the recorded digest."""
    file_name, key, wanted = ARRAYS[name]
    found = sorted(source.rglob(file_name))
    if len(found) != 1:
        raise SystemExit(f"expected one file {file_name} in {source} and below, found {len(found)}")
    with np.load(found[0]) as file:
        values: NDArray[Any] = file[key]
    if digest(values) != wanted:
        raise SystemExit(
            f"array {key!r} of {found[0]} has SHA-256 {digest(values)}, expected {wanted}: "
            "it is another version of the data"
        )
    return values


def runs(slices: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Consecutive numbers, apart."""
    return np.split(slices, np.flatnonzero(np.diff(slices) > 1) + 1)


def write_samples(place: Path, samples: NDArray[np.float16], affine: NDArray[np.float64]) -> None:
    """The members' posteriors of one case as a georeferenced Zarr array."""
    shutil.rmtree(place, ignore_errors=True)
    sizes = {"z": SLICES}
    array = zarr.create_array(
        place,
        shape=samples.shape,
        dtype=samples.dtype,
        chunks=tuple(sizes.get(dim, size) for dim, size in zip(DIMS, samples.shape, strict=True)),
        compressors=VOTES,
        fill_value=np.nan,
        dimension_names=DIMS,
        attributes={
            "long_name": "class probability of six random forests of 32 trees",
            "units": "1",
            "class_names": list(CLASSES),
            "affine": affine.tolist(),
            "affine_dims": ["x", "y", "z"],
        },
        config={"write_empty_chunks": True},
    )
    array[...] = samples


def write_labels(place: Path, labels: NDArray[np.uint8], affine: NDArray[np.float64]) -> None:
    """The labels of one case as a .nii.gz file that holds no time and no name."""
    image = nibabel.Nifti1Image(labels, affine)
    image.set_sform(affine, code=2)
    image.set_qform(None, code=0)
    image.header.set_xyzt_units("mm")
    place.write_bytes(gzip.compress(image.to_bytes(), 9, mtime=0))


def build(source: Path, destination: Path) -> None:
    """Write every case and the manifest."""
    raw = {name: read(source, name) for name in ARRAYS}
    destination.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["patient", "visit", "slices", "samples", "reference"])
    for number, slices in enumerate(runs(np.flatnonzero(~raw["trained"]))):
        part = slice(int(slices[0]), int(slices[-1]) + 1)
        affine = raw["affine"].copy()
        affine[:3, 3] += affine[:3, 2] * part.start
        samples, labels = f"slab{number}_samples.zarr", f"slab{number}_labels.nii.gz"
        write_samples(destination / samples, raw["samples"][:, :, :, part], affine)
        write_labels(destination / labels, np.ascontiguousarray(raw["labels"][:, :, part]), affine)
        table.writerow(["example_ct", f"slab{number}", f"{part.start} to {part.stop - 1}", samples, labels])
    (destination / "manifest.csv").write_text(text.getvalue(), encoding="utf-8")


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the raw npz files")
    parser.add_argument("destination", type=Path, help="the folder to write")
    given = parser.parse_args()
    build(given.source, given.destination)
    sizes = [file.stat().st_size for file in given.destination.rglob("*") if file.is_file()]
    print(f"{given.destination}: {len(sizes)} files, {sum(sizes) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
