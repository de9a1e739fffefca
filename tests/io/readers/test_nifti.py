"""NIfTI files: read as nibabel reads them, lazily and once; what cannot be right is refused in one sentence."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.io import file_cache
from dask_uncert.io.open import open_stored
from dask_uncert.io.readers import nifti
from tests.support.readers import refused

SAMPLES = Path(nibabel.__file__).parent / "tests" / "data"
LINEAR = np.array([[0, -2, 0, 5], [1.5, 0, 0, -7], [0, 0, 3, 11], [0, 0, 0, 1.0]])


def write(path, values, affine=LINEAR, kind=nibabel.Nifti1Image, order="<", slope=None, inter=0.0):
    """Store values as they are under a header that may declare a scaling."""
    header = kind.header_class(endianness=order)
    header.set_data_dtype(values.dtype)
    image = kind(values, affine, header)
    if slope is not None:
        image.header.set_slope_inter(slope, inter)
    nibabel.save(image, path)
    return str(path)


def values_of(stored, region=..., role="values"):
    """What a pass makes of stored numbers."""
    return stored.decoding.values(stored[region], role)


def any_slice(n):
    return st.tuples(st.integers(0, n), st.integers(0, n), st.integers(1, 3)).map(lambda t: slice(*t))


@st.composite
def volumes(draw):
    shape = draw(st.lists(st.integers(2, 6), min_size=1, max_size=4))
    dtype = draw(st.sampled_from(["u1", "i1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]))
    seed = draw(st.integers(0, 1000))
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    region = tuple(draw(any_slice(n)) for n in shape)
    slope, inter = draw(st.sampled_from([(None, 0.0), (1.0, 0.0), (0.25, 3.0), (1 / 255, 0.0)]))
    return values, region, slope, inter


@settings(deadline=None, max_examples=20)
@given(
    volumes(),
    st.sampled_from("<>"),
    st.sampled_from([nibabel.Nifti1Image, nibabel.Nifti2Image]),
    st.sampled_from([".nii", ".nii.gz"]),
)
def test_any_part_of_any_volume_is_what_nibabel_reads(tmp_path_factory, volume, order, kind, ending):
    values, region, slope, inter = volume
    path = write(tmp_path_factory.mktemp("v") / f"a{ending}", values, LINEAR, kind, order, slope, inter)
    stored = pickle.loads(pickle.dumps(open_stored(path, "", "features")))
    found, expected = values_of(stored, region), np.asarray(nibabel.load(path).dataobj)[region]
    assert stored.shape == values.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert stored.dtype == values.dtype.newbyteorder("=")
    assert np.array_equal(found, expected)
    assert stored.dims == ("x", "y", "z", "t")[: values.ndim]
    assert stored.geometry(stored.dims).affine.tolist() == np.delete(LINEAR, range(values.ndim, 3), axis=1).tolist()
    if slope in (None, 1.0):
        assert found.dtype == values.dtype


@pytest.mark.parametrize("name", ["functional.nii", "anatomical.nii", "example4d.nii.gz", "example_nifti2.nii.gz"])
def test_sample_files_of_nibabel(name):
    # scl_slope and scl_inter, big-endian, oblique, NIfTI-2
    image, stored = nibabel.load(SAMPLES / name), open_stored(str(SAMPLES / name), "", "features")
    assert stored.shape == image.shape
    assert np.array_equal(values_of(stored), np.asarray(image.dataobj))
    assert stored[...].dtype.isnative
    assert np.allclose(stored.geometry(stored.dims).affine, image.affine[:, :4])
    assert stored.attributes["spacing_mm"] == pytest.approx(nibabel.affines.voxel_sizes(image.affine))
    assert stored.attributes["orientation"] == "".join(nibabel.aff2axcodes(image.affine))


def test_a_surface_file_is_not_a_volume():
    refused(r"reference: .* is a CIFTI-2 file", SAMPLES / "row_major.dconn.nii", "", "reference")


def test_axes_of_one_index_are_dropped_unless_they_are_named(tmp_path):
    path = write(tmp_path / "a.nii", np.zeros((2, 3, 1, 1, 4), "u1"))
    shapes = {
        None: ((2, 3, 1, 4), None),
        ("x", "y", "class"): ((2, 3, 4), None),
        ("x", "y", "z", "class"): ((2, 3, 1, 4), None),
        ("x", "y", "z", "t", "class"): ((2, 3, 1, 1, 4), None),
    }
    for dims, (shape, names) in shapes.items():
        stored = open_stored(path, "", "probabilities", dims)
        assert (stored.shape, stored.dims, stored[...].shape) == (shape, names, shape)
    flat = write(tmp_path / "b.nii", np.zeros((2, 3, 1, 1), "u1"))
    assert open_stored(flat, "", "mask").dims == ("x", "y", "z")
    assert open_stored(flat, "", "mask", ["x", "y"]).dims == ("x", "y")
    assert open_stored(flat, "", "mask", ["x", "y", "z", "class"]).shape == (2, 3, 1, 1)
    refused(r"contradict .*b\.nii, whose axes are x, y, z", flat, "", "mask", ["z", "y", "x"])


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i1", "i4"])
@pytest.mark.parametrize("top", [1, 5, 7, 53, 117])
def test_labels_come_through_scaling(tmp_path, dtype, top):
    labels = np.arange(top + 1.0).reshape(-1, 1, 1)
    path = tmp_path / "labels.nii"
    header = nibabel.Nifti1Header()
    header.set_data_dtype(dtype)
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4), header), path)  # nibabel packs the floats
    assert nibabel.load(path).dataobj.slope != 1
    assert np.array_equal(values_of(open_stored(str(path), "", "reference"), role="labels"), labels)
    plain = values_of(open_stored(str(path), "", "features"))
    assert np.array_equal(plain, np.asarray(nibabel.load(path).dataobj))


def test_values_between_labels_are_not_rounded(tmp_path):
    values = np.array([0, 1, 2.5, 5, 4.9995]).reshape(-1, 1, 1)
    header = nibabel.Nifti1Header()
    header.set_data_dtype("u2")
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4), header), tmp_path / "a.nii")
    found = values_of(open_stored(str(tmp_path / "a.nii"), "", "reference"), role="labels").ravel()
    assert found[[0, 1, 3]].tolist() == [0, 1, 5]
    assert np.allclose(found, values.ravel(), atol=5 / 65535)
    assert (found[[2, 4]] % 1 != 0).all()


def test_probabilities_stored_as_integers_keep_their_factor(tmp_path):
    path = write(tmp_path / "p.nii.gz", np.array([[[0, 127, 255]]], "u1"), slope=1 / 255)
    stored = open_stored(path, "", "probabilities")
    assert stored.dtype == np.uint8
    assert stored.decoding.scale == pytest.approx(1 / 255, rel=1e-7)
    assert values_of(stored).max() == pytest.approx(1)
    shifted = write(tmp_path / "q.nii", np.array([[[0, 127, 255]]], "u1"), slope=0.5, inter=1.0)
    assert values_of(open_stored(shifted, "", "p"), role="probabilities").tolist() == [[[1.0, 64.5, 128.5]]]


def test_microns_and_metres_are_millimetres(tmp_path):
    found = []
    for unit, factor in (("mm", 1.0), ("micron", 1000.0), ("meter", 0.001), (0, 1.0)):
        image = nibabel.Nifti1Image(np.zeros((2, 2, 2), "u1"), LINEAR * ([[factor]] * 3 + [[1]]))
        image.header.set_xyzt_units(xyz=unit)
        nibabel.save(image, tmp_path / "a.nii")
        found.append(open_stored(str(tmp_path / "a.nii"), "", "mask").geometry("xyz").affine)
    assert all(np.allclose(one, found[0], rtol=1e-6) for one in found)


def test_a_header_without_an_affine_has_no_geometry(tmp_path):
    image = nibabel.Nifti1Image(np.zeros((2, 2, 2), "u1"), None)
    image.header["sform_code"] = image.header["qform_code"] = 0
    nibabel.save(image, tmp_path / "a.nii")
    stored = open_stored(str(tmp_path / "a.nii"), "", "mask")
    assert stored.geometry("xyz") is None
    assert stored.attributes == {}


def test_a_compressed_volume_is_read_once_and_few_are_kept(tmp_path, monkeypatch):
    values = np.random.default_rng(0).integers(0, 9, (40, 40, 40)).astype("i2")
    paths = [write(tmp_path / f"{i}.nii.gz", values + i) for i in range(12)]
    reads = []
    whole = nifti.read_to_end
    monkeypatch.setattr(nifti, "read_to_end", lambda store, *rest: reads.append(store) or whole(store, *rest))
    monkeypatch.setattr(file_cache, "CACHED_BYTES", 6 * values.nbytes)
    file_cache._CACHE.clear()
    for i, path in enumerate(paths):
        for z in range(0, 40, 8):
            part = pickle.loads(pickle.dumps(open_stored(path, "", "features")))[:, :, z : z + 8]
            assert np.array_equal(part, values[:, :, z : z + 8] + i)
            with pytest.raises(ValueError, match="read-only"):
                part[0, 0, 0] = 1
    assert reads == paths
    assert len(file_cache._CACHE) == 6
    write(tmp_path / "11.nii.gz", values - 1)  # another volume under the same name
    assert np.array_equal(open_stored(paths[11], "", "features")[...], values - 1)
    monkeypatch.setattr(file_cache, "CACHED_BYTES", 0)
    open_stored(paths[0], "", "features")[...]
    assert len(file_cache._CACHE) == file_cache.CACHED_FILES


def test_threads_share_one_read(tmp_path, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    values = np.arange(60_000, dtype="i4").reshape(30, 40, 50)
    stored = open_stored(write(tmp_path / "a.nii.gz", values), "", "features")
    reads = []
    whole = nifti.read_to_end
    monkeypatch.setattr(nifti, "read_to_end", lambda *args: reads.append(args) or whole(*args))
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda z: stored[:, :, z], range(50)))
    assert np.array_equal(np.stack(parts, axis=-1), values)
    assert len(reads) == 1


def test_chunks_are_whole_slices(tmp_path):
    stored = open_stored(write(tmp_path / "a.nii", np.zeros((128, 64, 50, 3), "f4")), "", "p", list("xyzc"))
    assert stored.chunks == (128, 64, 11, 3)  # 11 slices are the first to hold 1 MiB
    assert open_stored(write(tmp_path / "b.nii", np.zeros((9, 9, 9), "u1")), "", "p").chunks == (9, 9, 9)


def test_a_url_is_read_like_a_file(tmp_path):
    import fsspec

    values = np.arange(24, dtype="i2").reshape(2, 3, 4)
    for ending in (".nii", ".nii.gz"):
        data = Path(write(tmp_path / f"a{ending}", values)).read_bytes()
        with fsspec.open(f"memory://a{ending}", "wb") as file:
            file.write(data)
        stored = open_stored(f"memory://a{ending}", "", "features")
        assert np.array_equal(stored[1:, :, ::2], values[1:, :, ::2])
        assert stored.fingerprint() is None
        with fsspec.open(f"memory://b{ending}", "wb") as file:
            file.write(data[:-9])
        with pytest.raises(InputError, match=r"damaged|ends after"):
            open_stored(f"memory://b{ending}", "", "features")[...]
    refused("there is no file", "memory://nothing.nii", "", "features")


def changed(path, at, value):
    """The file with some bytes of it replaced, compressed if it was."""
    compressed = path.name.endswith(".gz")
    data = bytearray(gzip.decompress(path.read_bytes()) if compressed else path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(gzip.compress(bytes(data)) if compressed else bytes(data))


BROKEN = {  # what is done to a good file, and what is said then
    "cut": (lambda p: p.write_bytes(p.read_bytes()[:-7]), r"ends after|damaged"),
    "cut in the header": (lambda p: p.write_bytes(p.read_bytes()[:60]), "does not begin with|damaged"),
    "empty": (lambda p: p.write_bytes(b""), "does not begin with a header"),
    "text": (lambda p: p.write_text("this is no volume at all " * 40), "does not begin|not compressed by gzip"),
    "magic": (lambda p: changed(p, 344, b"abc\0"), "has the magic number b'abc'"),
    "is half of a pair": (lambda p: changed(p, 344, b"ni1\0"), "is half of a pair"),
    "longer along y": (lambda p: changed(p, 44, (7).to_bytes(2, "little")), "states .* bytes"),
    "shorter along y": (lambda p: changed(p, 44, (3).to_bytes(2, "little")), "states .* bytes"),
    "negative along y": (lambda p: changed(p, 44, b"\xff\xff"), "states the shape"),
    "huge": (lambda p: changed(p, 42, b"\xff\x7f" * 3), r"states .* bytes.*(ends after|cannot hold)"),
    "9 axes": (lambda p: changed(p, 40, (9).to_bytes(2, "little")), "states 9 axes"),
    "no axis": (lambda p: changed(p, 40, (0).to_bytes(2, "little")), "states 0 axes"),
    "wider type": (lambda p: changed(p, 70, (64).to_bytes(2, "little") + (64).to_bytes(2, "little")), "states"),
    "narrower type": (lambda p: changed(p, 70, (2).to_bytes(2, "little")), "states"),
    "unknown type": (lambda p: changed(p, 70, (999).to_bytes(2, "little")), "damaged"),
    "complex": (lambda p: changed(p, 70, (32).to_bytes(2, "little")), "holds complex64; expected real numbers"),
    "colours": (lambda p: changed(p, 70, (128).to_bytes(2, "little")), r"holds colours \(R, G, B\)"),
    "voxels inside the header": (lambda p: changed(p, 108, np.float32(16).tobytes()), "inside the header"),
    "voxels later": (lambda p: changed(p, 108, np.float32(368).tobytes()), "states"),
    "voxels nowhere": (lambda p: changed(p, 108, np.float32(np.nan).tobytes()), "damaged"),
    "intercept": (lambda p: changed(p, 112, np.array([2, np.inf], "f4").tobytes()), "damaged"),
    "affine": (lambda p: changed(p, 280, np.float32(np.nan).tobytes()), "affine"),
}  # fmt: skip


@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_refused_in_one_paragraph(tmp_path, how, ending):
    path = tmp_path / f"a{ending}"
    write(path, np.random.default_rng(0).integers(0, 999, (4, 5, 6)).astype("i2"))
    open_stored(str(path), "", "reference")[...]
    spoil, message = BROKEN[how]
    spoil(path)
    with pytest.raises(InputError, match=message) as caught:
        open_stored(str(path), "", "reference")[...]
    text = str(caught.value)
    assert text.startswith("reference: ")
    assert str(path) in text
    assert "\n" not in text


def test_other_refusals(tmp_path):
    good = tmp_path / "a.nii"
    write(good, np.zeros((2, 2, 2), "u1"))
    (tmp_path / "b.nii.gz").write_bytes(good.read_bytes())
    refused(r"not compressed by gzip. Rename it without", tmp_path / "b.nii.gz", "", "mask")
    (tmp_path / "c.nii").write_bytes(gzip.compress(good.read_bytes()))
    refused(r"compressed by gzip. Name it `.nii.gz`", tmp_path / "c.nii", "", "mask")
    refused(
        r"there is no file at .*nothing\.nii. Check `store` under `inputs: mask`",
        tmp_path / "nothing.nii",
        "",
        "mask",
    )
    refused("is one array; leave out `array: p`", good, "p", "mask")
    (tmp_path / "d.nii").mkdir()
    refused("is a folder", tmp_path / "d.nii", "", "mask")
    stored = open_stored(str(good), "", "mask")
    write(good, np.ones((2, 2, 3), "u1"))
    with pytest.raises(InputError, match="has changed since it was opened"):
        stored[...]


@pytest.mark.parametrize("at", [30, 60, 90])
def test_a_flipped_bit_in_compressed_voxels_is_seen(tmp_path, at):
    path = tmp_path / "a.nii.gz"
    write(path, np.random.default_rng(0).integers(0, 999, (20, 20, 20)).astype("i2"))
    data = bytearray(path.read_bytes())
    data[len(data) * at // 100] ^= 16
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"a\.nii\.gz is damaged .*Copy it again"):
        open_stored(str(path), "", "features")[...]
