"""Arrays without a position, such as nnU-Net's `.npz`, that take it from another file of the same pixels."""

import nibabel as nib
import numpy as np
import pytest

import dask_uncert as du

AFFINE = np.array([[-2.0, 0, 0, 20], [0, -2, 0, 30], [0, 0, 3, -9], [0, 0, 0, 1]])
STORED = np.array([[2.0, 0, 0, -2], [0, -2, 0, 30], [0, 0, 3, -9], [0, 0, 0, 1]])
"""The same voxels with x the other way: x = 20 - 2 i is -2 + 2 (11 - i)."""


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A reference, and predictions as nnU-Net's two versions write them: class first, axes against the NIfTI's order."""
    folder = tmp_path_factory.mktemp("case")
    rng = np.random.default_rng(0)
    truth = (rng.random((12, 10, 6)) < 0.2).astype("u1")
    p = np.round(0.3 + 0.25 * truth + 0.3 * (rng.random(truth.shape) - 0.5), 3)
    nib.save(nib.Nifti1Image(truth[::-1], STORED), folder / "reference.nii.gz")
    nib.save(nib.Nifti1Image(truth, AFFINE), folder / "predicted.nii.gz")
    both = np.stack([1 - p, p]).transpose(0, 3, 2, 1)
    np.savez_compressed(folder / "second.npz", probabilities=both.astype("f4"))
    np.savez_compressed(folder / "first.npz", softmax=both.astype("f2"))
    return folder, float(du.f1(du.evaluate(p, truth, axis=None))[1])


def test_nnunet_archives_take_the_position_of_the_label_map_beside_them(case):
    folder, dice = case
    geometry, reference = {"like": str(folder / "predicted.nii.gz")}, folder / "reference.nii.gz"
    assert 0.7 < dice < 1
    for name in ("first", "second"):
        given = {"dims": "class,z,y,x", "geometry": geometry}
        found = du.evaluate(du.Input(folder / f"{name}.npz", **given), reference)
        assert du.f1(found)[1] == pytest.approx(dice, abs=0 if name == "second" else 0.01)
    archive = np.load(folder / "second.npz")["probabilities"]  # an array, too
    assert du.f1(du.evaluate(du.Input(archive, **given), reference))[1] == dice


def test_no_position_or_a_wrong_one_is_refused(case):
    folder, _ = case
    reference = folder / "reference.nii.gz"
    for options, problem in (
        ({"dims": "class,z,y,x"}, "turns its axis .*geometry: .*by_position"),
        ({"dims": "class,x,y,z", "geometry": {"like": str(reference)}}, "x = 12, y = 10, z = 6, but .* x = 6, y = 10, z = 12"),
        ({"dims": "class,z,y,x", "geometry": {"like": str(folder / "first.npz")}}, "neither an affine nor coordinates"),
        ({"dims": "class,z,y,x", "geometry": {"like": str(reference)}, "by_position": True}, "uses no position"),
    ):  # fmt: skip
        with pytest.raises(du.InputError, match=problem):
            du.evaluate(du.Input(folder / "second.npz", **options), reference)
    own = du.Input(folder / "predicted.nii.gz", geometry={"like": str(reference)})
    with pytest.raises(du.InputError, match="position of its own"):
        du.evaluate(prediction=own, reference=reference, classes=["no", "yes"])


def test_jobs_name_a_file_or_a_column(case, tmp_path, shared_client, without_pictures):
    folder, dice = case
    job = {
        "version": 1, "kind": "scene", "classes": ["no", "yes"], "measures": [], "output": str(tmp_path / "out"),
        "inputs": {
            "probabilities": {"store": str(folder / "second.npz"), "dims": ["class", "z", "y", "x"],
                              "geometry": {"like": str(folder / "predicted.nii.gz")}},
            "reference": str(folder / "reference.nii.gz"),
        },
    }  # fmt: skip
    assert du.f1(du.run(job, cluster=shared_client))[1] == dice
    cells = [str(folder / name) for name in ("second.npz", "reference.nii.gz", "predicted.nii.gz")]
    (tmp_path / "cases.csv").write_text(f"patient,probabilities,reference,labels\nP1,{','.join(cells)}\n")
    for column in ("labels", "reference"):  # both are files of the same voxels, stored in other directions
        options = {"dims": ["class", "z", "y", "x"], "geometry": {"like": column}}
        cohort = {
            **job, "kind": "cohort", "manifest": str(tmp_path / "cases.csv"), "output": str(tmp_path / column),
            "inputs": {"probabilities": options, "reference": {}},
        }  # fmt: skip
        right = column == "labels"
        assert (du.f1(du.run(cohort, cluster=shared_client))[1] == dice) == right
