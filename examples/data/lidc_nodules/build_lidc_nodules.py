"""Rebuild ``examples/data/lidc_nodules`` from the packed masks, to the same voxels and the same table each time.

    python examples/data/lidc_nodules/build_lidc_nodules.py SOURCE examples/data/lidc_nodules

SOURCE holds ``lidc_4rater_masks_packed.npz`` and ``meta.json``, in itself or in folders of any depth; ``SOURCE.md``
in the destination says where they come from. Their digests are checked before anything is written. What the
script does not write (``SOURCE.md``) stays.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

SHA256 = {
    "lidc_4rater_masks_packed.npz": "1a34407b39b3e24103a756b91ab5fa11f4a21192153a549acd590c6d090f3acd",
    "meta.json": "5a6879c401d575d75df9ea1134e460ee78116400e931a83bc4454cf2d5506ae6",
}
RADIOLOGISTS = 4
COLUMNS = (
    *("patient", "visit", "nodule", "radiologist", "size", "malignancy", "diameter_mm"),
    *("reference", "other_1", "other_2", "other_3"),
)
SIZES = ((10.0, "below 10 mm"), (20.0, "10 to 20 mm"), (np.inf, "above 20 mm"))


def find(source: Path, name: str) -> Path:
    """The file of this name, if it is the one that was recorded."""
    found = sorted(source.rglob(name))
    if len(found) != 1:
        raise SystemExit(f"expected one file {name} in {source} and below, found {len(found)}")
    digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
    if digest != SHA256[name]:
        raise SystemExit(f"{found[0]} has SHA-256 {digest}, expected {SHA256[name]}: another version of the data")
    return found[0]


def affine(about: dict[str, Any]) -> NDArray[np.float64]:
    """Index (x, y, z) to mm: columns of the slice run to the left, rows to the back, slices up.

    z is the scanner's; x and y count from the corner of the whole slice, for its own place is not recorded.
    """
    z, y, x = about["origin_z_y_x"]
    side = about["pixel_spacing_mm"]
    return np.array(
        [
            [-side, 0, 0, -side * x],
            [0, -side, 0, -side * y],
            [0, 0, about["slice_spacing_mm"], z],
            [0, 0, 0, 1],
        ]
    )


def nifti(mask: NDArray[np.uint8], about: dict[str, Any]) -> bytes:
    """A mask (x, y, z) as the bytes of a .nii.gz file that holds no time and no name."""
    image = nibabel.Nifti1Image(mask, affine(about))
    image.set_sform(affine(about), code=2)
    image.set_qform(None, code=0)
    image.header.set_xyzt_units("mm")
    return gzip.compress(image.to_bytes(), 9, mtime=0)


def diameter(masks: NDArray[np.uint8], about: dict[str, Any]) -> float:
    """Return the diameter of a sphere with the radiologists' median volume, in mm."""
    voxel = about["slice_spacing_mm"] * about["pixel_spacing_mm"] ** 2
    volume = float(np.median(masks.reshape(RADIOLOGISTS, -1).sum(axis=1))) * voxel
    return float((6 * volume / np.pi) ** (1 / 3))


def build(source: Path, destination: Path) -> None:
    """Write the masks and the manifest."""
    with np.load(find(source, "lidc_4rater_masks_packed.npz")) as file:
        packed = dict(file)
    about_all = json.loads(find(source, "meta.json").read_text(encoding="utf-8"))
    destination.mkdir(parents=True, exist_ok=True)
    rows = []
    for about in about_all:
        shape = tuple(about["shape_rater_z_y_x"])
        masks = np.unpackbits(packed[about["key"]])[: np.prod(shape)].reshape(shape)
        files = [f"{about['key']}_radiologist{k + 1}.nii.gz" for k in range(RADIOLOGISTS)]
        for file_name, mask in zip(files, masks, strict=True):
            (destination / file_name).write_bytes(nifti(np.ascontiguousarray(mask.T), about))
        mm = diameter(masks, about)
        rated = np.mean([one[3] for one in about["subtlety_texture_margin_malignancy"]])
        for k in range(RADIOLOGISTS):
            who = {
                "patient": about["patient"],
                "visit": f"{about['key']}-radiologist{k + 1}",
                "nodule": about["key"],
                "radiologist": k + 1,
                "size": next(name for limit, name in SIZES if mm < limit),
                "malignancy": "above 3" if rated > 3 else "at most 3",
                "diameter_mm": f"{mm:.1f}",
                "reference": files[k],
            }
            others = [one for i, one in enumerate(files) if i != k]
            rows.append({**who, **{f"other_{i + 1}": one for i, one in enumerate(others)}})
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    (destination / "manifest.csv").write_text(text.getvalue(), encoding="utf-8")


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the raw files")
    parser.add_argument("destination", type=Path, help="the folder to write")
    given = parser.parse_args()
    build(given.source, given.destination)
    sizes = [file.stat().st_size for file in given.destination.rglob("*") if file.is_file()]
    print(f"{given.destination}: {len(sizes)} files, {sum(sizes) / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
