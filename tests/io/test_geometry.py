"""Inputs that say where they lie: flips and permutations are undone, anything else is refused."""

from __future__ import annotations

import json
import pickle
from itertools import permutations

import nibabel
import numpy as np
import pytest
import xarray as xr
import yaml
import zarr
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.cli import main
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.execution.evaluate_regression import evaluate_regression, prepare_regression
from dask_uncert.inputs.alignment import align_axes, shared_geometry
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.scene import make_scene
from dask_uncert.io.geometry import geometry_in, geometry_of
from dask_uncert.io.lazy_array import Reversed
from dask_uncert.io.open import open_stored
from dask_uncert.io.readers import nifti as nifti_reader
from dask_uncert.io.readers import stored_array
from dask_uncert.jobs.load import plan_job, read_job
from dask_uncert.metrics import classification
from dask_uncert.spec.inputs import Input
from dask_uncert.spec.options import RegressionOptions


def turned(values, affine, order, signs):
    """The same voxels with other axes: array axis i is the old axis order[i], from its end where the sign is -1."""
    n = len(order)
    moved = np.transpose(values, [*order, *range(n, values.ndim)])[tuple(slice(None, None, sign) for sign in signs)]
    matrix = np.eye(4)
    matrix[:3, :n] = affine[:3, list(order)] * signs
    matrix[:3, 3] = affine[:3, 3]
    for axis, sign in zip(order, signs, strict=True):
        if sign < 0:
            matrix[:3, 3] += affine[:3, axis] * (values.shape[axis] - 1)
    matrix[:3, n:3] = affine[:3, n:3]
    return moved, matrix


@st.composite
def placements(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=3, max_size=3)))
    angles = np.array(draw(st.lists(st.floats(-3, 3), min_size=3, max_size=3)))
    q = np.linalg.qr(np.cos(np.outer(angles + 1, [1, 2, 3]) + np.eye(3)))[0]
    affine = np.eye(4)
    affine[:3, :3] = q * draw(st.tuples(*[st.floats(0.3, 5)] * 3))
    affine[:3, 3] = draw(st.tuples(*[st.floats(-300, 300)] * 3))
    order = draw(st.sampled_from(list(permutations(range(3)))))
    signs = draw(st.tuples(*[st.sampled_from([1, -1])] * 3))
    return shape, affine, order, signs


def cube(name, values, affine, dims=("x", "y", "z"), where=None):
    names = (*dims, *("class",) * (values.ndim - len(dims)))
    return Cube(name, values, names, None, where or f"{name}.nii", geometry_of(affine, dims))


def aligned(cubes):
    """Each input's voxels in the scene's order of dimensions."""
    scene = make_scene(cubes, 2)
    return scene, {name: np.transpose(one.data[...], scene.order(name)) for name, one in scene.cubes.items()}


@given(placements(), st.randoms(use_true_random=False))
def test_any_flip_and_permutation_is_undone(placement, random):
    shape, affine, order, signs = placement
    truth = np.arange(np.prod(shape)).reshape(shape)
    p = np.stack([truth, -truth], axis=-1).astype(float)
    moved, matrix = turned(p, affine, order, signs)
    noise = np.array([[random.uniform(-1e-5, 1e-5) for _ in range(4)] for _ in range(3)])
    matrix[:3] += noise * 0.3  # as headers round: well within a hundredth of the smallest voxel
    scene, found = aligned(
        {"probabilities": cube("probabilities", moved, matrix), "reference": cube("reference", truth, affine)}
    )
    assert np.array_equal(found["probabilities"][..., 0], found["reference"])
    assert found["probabilities"].shape[:3] == scene.shape
    assert scene.cubes["reference"].data is truth  # the reference stays as it is
    assert shared_geometry(scene.cubes) == scene.cubes["reference"].geometry


@given(placements(), st.integers(0, 2), st.sampled_from(["shift", "spacing", "shear", "turn"]))
def test_other_differences_are_refused(placement, axis, how):
    shape, affine, order, signs = placement
    shape = tuple(n + 2 for n in shape)
    values = np.zeros(shape)
    moved, matrix = turned(values, affine, order, signs)
    side = np.linalg.norm(matrix[:3, axis])
    other = matrix[:3, (axis + 1) % 3]
    if how == "shift":
        matrix[:3, 3] += matrix[:3, axis] / side * 0.02 * np.linalg.norm(matrix[:3, :3], axis=0).min()
    elif how == "spacing":
        matrix[:3, axis] *= 1.02
    elif how == "shear":
        matrix[:3, axis] += 0.02 * other * side / np.linalg.norm(other)
    else:
        matrix[:3, axis], matrix[:3, (axis + 1) % 3] = (
            0.8 * matrix[:3, axis] + 0.6 * other * side / np.linalg.norm(other),
            0.8 * other - 0.6 * matrix[:3, axis] * np.linalg.norm(other) / side,
        )
    inputs = {
        "probabilities": cube("probabilities", moved, matrix),
        "reference": cube("reference", values, affine),
    }
    with pytest.raises(InputError, match=r"probabilities\.nii and reference\.nii \(reference\) have different grids"):
        align_axes(inputs)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=3), st.data())
def test_reversed_reads_any_part(shape, data):
    values = np.arange(np.prod(shape)).reshape(shape)
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    part = tuple(
        slice(data.draw(st.integers(0, n)), data.draw(st.integers(0, n)), data.draw(st.integers(1, 3))) for n in shape
    )[: data.draw(st.integers(1, len(shape)))]
    lazy = pickle.loads(pickle.dumps(Reversed(values, sorted(axes))))
    assert np.array_equal(lazy[part], np.flip(values, sorted(axes))[part])
    assert np.array_equal(lazy[...], np.flip(values, sorted(axes)))
    assert np.array_equal(lazy[(..., part[-1])], np.flip(values, sorted(axes))[(..., part[-1])])
    assert lazy[part].flags.c_contiguous


def test_an_input_without_a_position_allows_no_reversal():
    affine, values = np.eye(4), np.zeros((2, 2, 2))
    flipped = turned(values, affine, (0, 1, 2), (-1, 1, 1))[1]
    silent = Cube("mask", values, ("x", "y", "z"), None, "mask.zarr")
    same = {
        "probabilities": cube("probabilities", values, affine),
        "reference": cube("reference", values, affine),
    }
    assert align_axes({**same, "mask": silent}) == {**same, "mask": silent}
    other = {**same, "probabilities": cube("probabilities", values, flipped), "mask": silent}
    with pytest.raises(InputError, match=r"has other axes than .* mask\.zarr \(mask\) does not say"):
        align_axes(other)


def test_other_sizes_on_one_grid_are_named():
    affine = np.eye(4)
    inputs = {
        "probabilities": cube("probabilities", np.zeros((2, 2, 3)), affine),
        "reference": cube("reference", np.zeros((2, 2, 2)), affine),
    }
    with pytest.raises(InputError, match=r"has z = 2, but `probabilities` has z = 3"):
        make_scene(inputs, 2)
    with pytest.raises(ValueError, match="shape"):
        geometry_of(np.eye(3), "xyz")
    with pytest.raises(ValueError, match="finite"):
        geometry_of(np.eye(4) * np.nan, "xyz")


def test_inputs_of_regressions_are_aligned_too():
    rng = np.random.default_rng(0)
    reference, mean, variance = rng.normal(size=(3, 4, 3, 2))
    moved, matrix = turned(mean, np.eye(4), (2, 0, 1), (1, -1, -1))
    inputs = {"mean": cube("mean", moved, matrix), "reference": cube("reference", reference, np.eye(4))}
    inputs["variance"] = cube("variance", variance**2, np.eye(4))
    assert prepare_regression(RegressionOptions(), inputs).compute() == evaluate_regression(
        mean, reference, variance=variance**2
    )


def nifti(path, values, affine):
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return {"store": path.name}


def job(folder, inputs, **words):
    """A job file on files beside it."""
    asked = {
        "version": 1,
        "kind": "scene",
        "inputs": inputs,
        "output": "out",
        "measures": ["entropy"],
        **words,
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(asked))
    return folder / "job.yaml"


def evaluated(folder, inputs, **words):
    """What the job's pass gives, without its report."""
    return plan_job(*read_job(job(folder, inputs, **words))).compute()


BINARY = {0: "other", 1: "lesion"}


@pytest.mark.slow
def test_the_same_object_on_a_flipped_axis(tmp_path):
    flipped = np.diag([-1.0, 1, 1, 1])
    flipped[0, 3] = 3
    label = np.array([1, 0, 0, 0], "u1").reshape(4, 1, 1)
    p = np.array([0, 0, 0, 1], "f4").reshape(4, 1, 1)
    inputs = {
        "reference": nifti(tmp_path / "label.nii", label, flipped),
        "probabilities": nifti(tmp_path / "p.nii.gz", p, np.eye(4)),
    }
    path = job(tmp_path, inputs, classes=BINARY, maps=["predicted", "correct"])
    message = CliRunner().invoke(main.cli, ["run", str(path), "--quiet"], standalone_mode=False)
    assert message.exception is None, message.exception
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [one["f1"] for one in found["classes"]] == [1, 1]
    assert found["counted"] == 4
    # The maps lie as the reference does, and say so; read again, they lie where they did.
    maps = xr.open_zarr(tmp_path / "out" / "maps.zarr", consolidated=False)
    assert maps.predicted.values.ravel().tolist() == [1, 0, 0, 0]
    assert maps.predicted.attrs["affine"] == flipped.tolist()
    again = open_stored(str(tmp_path / "out" / "maps.zarr"), "predicted", "reference")
    assert again.geometry(again.dims) == geometry_in(maps.predicted.attrs, ["x", "y", "z"])
    assert again.geometry(again.dims).affine.tolist() == flipped.tolist()
    stored = {"store": "out/maps.zarr", "array": "predicted"}
    once_more = evaluated(tmp_path, {**inputs, "reference": stored}, classes=BINARY)
    assert classification.accuracy(once_more) == 1
    flipped[0, 3] = 3.5
    nifti(tmp_path / "label.nii", label, flipped)
    apart = r"have different grids.*steps x \(1, 0, 0\).*from \(3\.5, 0, 0\).* 0\.5 mm apart"
    with pytest.raises(InputError, match=apart):
        evaluated(tmp_path, inputs, classes=BINARY)


@pytest.mark.slow
def test_labels_stored_as_floats_under_integers(tmp_path):
    labels = np.arange(6.0).reshape(6, 1, 1)
    header = nibabel.Nifti1Header()
    header.set_data_dtype("u2")
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4), header), tmp_path / "labels.nii.gz")
    p = nifti(tmp_path / "p.nii", np.eye(6, dtype="f4").reshape(6, 1, 1, 6), np.eye(4))
    inputs = {
        "reference": {"store": "labels.nii.gz"},
        "probabilities": {**p, "dims": ["x", "y", "z", "class"]},
    }
    classes = {code: f"class {code}" for code in range(6)}
    found = evaluated(tmp_path, inputs, classes=classes)
    assert np.array_equal(found.decisions.confusion, np.eye(6))
    labels[2] = 2.5
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4), header), tmp_path / "labels.nii.gz")
    with pytest.raises(InputError, match=r"not whole numbers: 2\.5\d* \(1 pixel\)"):
        evaluated(tmp_path, inputs, classes=classes)


@pytest.mark.parametrize(("label", "prediction"), [((2, 2, 2, 1), (2, 2, 2)), ((2, 2, 2), (2, 2, 2, 1))])
def test_axes_of_a_single_index(tmp_path, label, prediction):
    rng = np.random.default_rng(0)
    inputs = {
        "reference": nifti(tmp_path / "r.nii", rng.integers(0, 2, label).astype("u1"), np.eye(4)),
        "probabilities": nifti(tmp_path / "p.nii", rng.random(prediction).astype("f4"), np.eye(4)),
    }
    assert int(evaluated(tmp_path, inputs, classes=BINARY).ledger.counted) == 8
    inputs["reference"] = nifti(tmp_path / "r.nii", rng.integers(0, 2, (2, 2, 2, 3)).astype("u1"), np.eye(4))
    with pytest.raises(InputError, match=r"covers x = 2, y = 2, z = 2, t = 3"):
        evaluated(tmp_path, inputs, classes=BINARY)


def test_packed_probabilities_have_the_factor_of_their_file(tmp_path):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 256, (5, 4, 3, 1))
    stored = np.concatenate([counts, 255 - counts], axis=-1).astype("u1")
    image = nibabel.Nifti2Image(stored, np.eye(4))
    image.header.set_slope_inter(1 / 255, 0)
    nibabel.save(image, tmp_path / "p.nii")
    label = rng.integers(0, 2, (5, 4, 3)).astype("u1")
    packed = {"store": "p.nii", "dims": ["x", "y", "z", "class"]}
    inputs = {"reference": nifti(tmp_path / "r.nii", label, np.eye(4)), "probabilities": packed}
    found = evaluated(tmp_path, inputs, classes=BINARY)
    assert found == evaluate(Input(stored, scale=1 / 255), label, classes=BINARY, measures=["entropy"])
    zarr.create_array(str(tmp_path / "p.zarr"), data=stored, dimension_names=("x", "y", "z", "class"))
    declared = {"store": "p.zarr", "scale": 1 / 255}
    assert evaluated(tmp_path, {**inputs, "probabilities": declared}, classes=BINARY) == found
    samples = {"reference": inputs["reference"], "samples": [packed, packed]}
    assert evaluated(tmp_path, samples, classes=BINARY).ledger == found.ledger
    with pytest.raises(InputError, match=r"declares scale 0\.00392157 and offset 0 itself; leave out"):
        evaluated(tmp_path, {**inputs, "probabilities": {**packed, "scale": 0.5}}, classes=BINARY)
    image.header.set_slope_inter(1 / 254, 0)
    nibabel.save(image, tmp_path / "q.nii")
    with pytest.raises(InputError, match="must be the same for all"):
        evaluated(tmp_path, {**samples, "samples": [packed, {**packed, "store": "q.nii"}]}, classes=BINARY)


def test_many_blocks_decompress_a_volume_once(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    p = rng.random((64, 64, 40)).astype("f4")
    label = (p > 0.4).astype("u1")
    flipped, affine = turned(label, np.eye(4), (1, 0, 2), (-1, 1, -1))
    inputs = {
        "reference": nifti(tmp_path / "r.nii.gz", flipped, affine),
        "probabilities": nifti(tmp_path / "p.nii.gz", p, np.eye(4)),
    }
    reads = []
    whole = nifti_reader.read_to_end
    monkeypatch.setattr(nifti_reader, "read_to_end", lambda store, *rest: reads.append(store) or whole(store, *rest))
    monkeypatch.setattr(stored_array, "MIN_CHUNK_BYTES", 1 << 12)
    plan = plan_job(*read_job(job(tmp_path, inputs, classes=BINARY)))
    assert plan.grid.blocks > 10
    assert plan.block_memory() > p.nbytes + label.nbytes  # both volumes stay in memory
    assert plan.compute() == evaluate(p, label, axis=None, classes=BINARY, measures=["entropy"])
    assert sorted(reads) == sorted(str(tmp_path / name) for name in ("p.nii.gz", "r.nii.gz"))
