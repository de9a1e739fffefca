"""Rebuild ``examples/data/indian_pines.zarr`` from the raw arrays, to the same bytes each time.

    python examples/data/build_indian_pines.py SOURCE examples/data/indian_pines.zarr

SOURCE holds ``indian_pines.npz``, ``labels_and_masks.npz``, ``rf_proba.npz`` and
``rf_ensemble_proba.npz``, in itself or in folders of any depth; ``SOURCE.md`` beside the store says where
they come from.
The digests of the arrays are checked before anything is written; an existing store is replaced only when
the new one is whole.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, ZstdCodec

SIDE = 37  # pixels of a chunk along y and x: 4 x 4 chunks of the 145 x 145 scene, the same for every array
CLASSES = {
    1: "Alfalfa",
    2: "Corn-notill",
    3: "Corn-mintill",
    4: "Corn",
    5: "Grass-pasture",
    6: "Grass-trees",
    7: "Grass-pasture-mowed",
    8: "Hay-windrowed",
    9: "Oats",
    10: "Soybean-notill",
    11: "Soybean-mintill",
    12: "Soybean-clean",
    13: "Wheat",
    14: "Woods",
    15: "Buildings-Grass-Trees-Drives",
    16: "Stone-Steel-Towers",
}

# Measured, whole store: these two codecs 6.6 MB, byte shuffle for all 8.7 MB, bit shuffle for all 10.8 MB.
# Spectra vary smoothly, so their bytes are shuffled; forests vote in k/500 or k/50, so zstd sees whole words.
SPECTRA = BloscCodec(cname="zstd", clevel=5, shuffle="shuffle", typesize=2)
VOTES = ZstdCodec(level=9)


@dataclass(frozen=True)
class Entry:
    """One array of the store: which key of which file, how it is stored, the SHA-256 of its C-order bytes."""

    file: str
    key: str
    dims: tuple[str, ...]
    fill: float | bool
    compressor: BloscCodec | ZstdCodec
    sha256: str
    attributes: dict[str, Any] = field(default_factory=dict)


CHANNELS = {"class_codes": list(CLASSES), "class_names": list(CLASSES.values())}
ENTRIES = {
    "reflectance": Entry(
        "indian_pines.npz",
        "cube",
        ("y", "x", "band"),
        0,
        SPECTRA,
        "36468dd7336c8bd37a80cced54362ea426f226703f3797ba494556fd8134e77f",
        {
            "long_name": "AVIRIS spectrum, 200 bands left after removal of the water absorption bands",
            "units": "1",
            "comment": "numbers as distributed, 955 to 9604: scaled radiance, not calibrated reflectance",
        },
    ),
    "labels": Entry(
        "indian_pines.npz",
        "gt",
        ("y", "x"),
        0,
        VOTES,
        "ebf20cfe0bce98f01885f0ab4fd1857925db3ef0a1f1624bbee3ffcb92425103",
        {
            "long_name": "land cover seen on the ground; 0 is unlabelled",
            "units": "1",
            "flag_values": [0, *CLASSES],
            "flag_meanings": " ".join(["unlabelled", *CLASSES.values()]),
            "classes": {str(code): name for code, name in CLASSES.items()},
        },
    ),
    "held_out": Entry(
        "labels_and_masks.npz",
        "test_mask",
        ("y", "x"),
        False,
        VOTES,
        "91b3e5ac7359869252d8c48b7e12ad92d6620247417ea2dd480ee6d62fc28e60",
        {"long_name": "labelled pixel that no model was trained on", "units": "1"},
    ),
    "random_forest": Entry(
        "rf_proba.npz",
        "proba",
        ("y", "x", "class"),
        np.nan,
        VOTES,
        "51a65b111fa49d4f907f6c1d54880836af633cbfae5ad24855b43897fc5dfe0c",
        {"long_name": "class probability of a random forest of 500 trees", "units": "1", **CHANNELS},
    ),
    "forest_samples": Entry(
        "rf_ensemble_proba.npz",
        "samples",
        ("sample", "y", "x", "class"),
        np.nan,
        VOTES,
        "7d4924c4a67297fbdc4be5eb04a9972a7d7ec4fbddbddc850f3ee8230fe3736a",
        {
            "long_name": "class probability of ten random forests of 50 trees, each on its own bootstrap",
            "units": "1",
            **CHANNELS,
        },
    ),
}


def digest(values: NDArray[Any]) -> str:
    """SHA-256 of the little-endian C-order bytes."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(np.ascontiguousarray(little).tobytes()).hexdigest()


def read(source: Path, name: str) -> NDArray[Any]:
    """The raw array of an entry; refuses one that differs from the recorded digest."""
    entry = ENTRIES[name]
    found = sorted(source.rglob(entry.file))
    if len(found) != 1:
        raise SystemExit(f"expected one file {entry.file} in {source} and below, found {len(found)}")
    with np.load(found[0]) as file:
        values: NDArray[Any] = file[entry.key]
    if digest(values) != entry.sha256:
        raise SystemExit(
            f"array {entry.key!r} of {found[0]} has SHA-256 {digest(values)}, expected {entry.sha256}: "
            "it is another version of the data"
        )
    return values


def build(source: Path, destination: Path) -> None:
    """Write the whole store beside its place under a temporary name, then move it there."""
    arrays = {name: read(source, name) for name in ENTRIES}
    unfinished = destination.with_name(destination.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    group = zarr.create_group(
        unfinished,
        zarr_format=3,
        attributes={
            "title": "Indian Pines (AVIRIS, 12 June 1992) with the posteriors of two models",
            "source": "doi:10.4231/R7RX991C; see SOURCE.md beside this store",
            "license": "CC BY 3.0",
        },
    )
    for name, values in arrays.items():
        entry = ENTRIES[name]
        sides = {"y": SIDE, "x": SIDE}
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=tuple(sides.get(dim, size) for dim, size in zip(entry.dims, values.shape, strict=True)),
            compressors=entry.compressor,
            fill_value=entry.fill,
            dimension_names=entry.dims,
            attributes=entry.attributes,
            config={"write_empty_chunks": True},  # every block is a file, also one without a label
        )
        array[...] = values
    if destination.exists():
        shutil.rmtree(destination)
    unfinished.rename(destination)


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the raw npz files")
    parser.add_argument("destination", type=Path, help="the Zarr store to write, replaced when it exists")
    given = parser.parse_args()
    build(given.source, given.destination)
    sizes = [file.stat().st_size for file in given.destination.rglob("*") if file.is_file()]
    print(f"{given.destination}: {len(sizes)} files, {sum(sizes) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
