"""OME-Zarr: levels, axes and place by its metadata, in versions 0.2 to 0.5; hierarchies that cannot be right."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from tests.support import DATA
from tests.support.readers import refused

SAMPLES = DATA / "formats" / "ome_zarr"


@pytest.mark.parametrize(
    ("name", "array", "path", "shape", "dims", "spacing"),
    [
        ("neuroglancer_simple_0.4.zarr", "", "scale0/image", (10, 10), ("y", "x"), (4e-6, 3e-5)),
        ("neuroglancer_simple_0.5.zarr", "", "scale0/image", (10, 10), ("y", "x"), (4e-6, 3e-5)),
        ("neuroglancer_simple_0.5.zarr", "scale1/image", "scale1/image", (5, 5), ("y", "x"), None),
        ("bioimagetools_image-02_v0.4.zarr", "", "0", (200, 200), ("y", "x"), (1e-3, 1e-3)),
        ("bioimagetools_image-04_v0.4.zarr", "1", "1", (2, 32, 32), ("z", "y", "x"), (1e-3, 2e-3, 2e-3)),
        ("omezarrpy_v0.2.zarr", "", "0", (1, 2, 1, 16, 16), None, None),
    ],
)
def test_images_of_other_programs(name, array, path, shape, dims, spacing):
    stored = open_stored(str(SAMPLES / name), array, "p")
    assert (stored.array, stored.shape, stored.dims) == (path, shape, dims)
    assert np.array_equal(stored[...], zarr.open_group(SAMPLES / name, mode="r")[path][...])
    if spacing is not None:
        assert stored.geometry(stored.dims).spacing == pytest.approx(spacing)


def test_an_image_whose_chunks_were_never_written_is_known_to_lack_them():
    stored = open_stored(str(SAMPLES / "bioimagetools_image-04_v0.4.zarr"), "", "p")
    assert len(stored.absent_chunks()) == int(
        np.prod([-(-n // c) for n, c in zip(stored.shape, stored.chunks, strict=True)])
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("image-01.zarr", "has several arrays or none"),
        ("image-02.zarr", "has several arrays or none"),
        ("image-03.zarr", "name a level '0' that has no array"),
    ],
)
def test_broken_hierarchies(name, said):
    refused(said, SAMPLES / "bioimagetools_invalid" / name, "", "p")


@pytest.fixture
def image(tmp_path):
    """Writes an image with these changes to its metadata."""

    def write(**changes):
        place = tmp_path / "i.zarr"
        shutil.rmtree(place, ignore_errors=True)
        one = {
            "axes": [{"name": n, "type": "space", "unit": "micrometer"} for n in "yx"],
            "datasets": [{"path": "0", "coordinateTransformations": [
                {"type": "scale", "scale": [2.0, 3.0]}, {"type": "translation", "translation": [10.0, 20.0]}]}],
            "coordinateTransformations": [{"type": "scale", "scale": [10.0, 10.0]}],
            **changes,
        }  # fmt: skip
        group = zarr.open_group(place, mode="w", attributes={"ome": {"version": "0.5", "multiscales": [one]}})
        group.create_array("0", shape=(4, 5), dtype="u1")[...] = 1
        return str(place)

    return write


def test_transformations_of_level_and_image_are_combined(image):
    stored = open_stored(image(), "", "p")
    found = stored.geometry(("row", "column"))
    assert found.dims == ("row", "column")
    assert np.allclose(found.steps, ((0, 0.02, 0), (0.03, 0, 0)), rtol=1e-12)
    assert found.origin == pytest.approx((0.2, 0.1, 0))  # mm


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": [{"name": "y", "type": "space"}]},
        {"axes": [{"name": "y"}, {"name": "y"}]},
        {"axes": "yx"},
        {"axes": [{"type": "space"}] * 2},
        {"datasets": []},
        {"datasets": [{"path": "../0"}]},
        {"datasets": [{"path": "0"}], "coordinateTransformations": None},
        {"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 0.0]}]}]},
        {"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0]}]}]},
        {"datasets": [{"path": "0", "coordinateTransformations": [{"type": "affine", "affine": [[1]]}]}]},
        {"datasets": [{"path": "0", "coordinateTransformations": {"type": "scale"}}]},
    ],
)
def test_impossible_metadata_are_refused(image, changes):
    with pytest.raises(InputError, match=r"p: .*i.zarr.*OME-Zarr metadata") as error:
        open_stored(image(**changes), "", "p")
    assert "\n" not in str(error.value)


def test_several_images_need_a_name(image):
    place = image()
    words = json.loads((Path(place) / "zarr.json").read_text())
    words["attributes"]["ome"]["multiscales"] *= 2
    (Path(place) / "zarr.json").write_text(json.dumps(words))
    refused("holds 2 images; name a level with `array`: 0, 0", place, "", "p")
    assert open_stored(place, "0", "p").dims == ("y", "x")
