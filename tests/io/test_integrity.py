"""Flipped bits in what we wrote: each is refused by name, or changes no number."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.errors import ZarrUserWarning

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.execution.checkpoints import open_checkpoints
from dask_uncert.execution.evaluate import prepare
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.maps import MapWriter, preview
from dask_uncert.io.owned_folder import MARKER, check_owned, make_folder, marker_of
from dask_uncert.io.readers.zarr import ZarrArray
from dask_uncert.io.summary_store import write_counts
from dask_uncert.jobs.provenance import read_results
from dask_uncert.spec.options import SceneOptions
from tests.support.cohorts import Cohort
from tests.support.scenes import Scene

CAUSES = (
    "not as dask-uncert w",
    "another version",
    "holds no summary",
    "no summary at",
    "holds no maps",
    "not as dask-uncert writes",
    "not ours",
)


def evaluation(seed: int = 0) -> du.Evaluation:
    rng = np.random.default_rng(seed)
    return du.evaluate(rng.dirichlet(np.ones(3), (30, 20)), rng.integers(0, 3, (30, 20)), measures=["entropy"])


@contextmanager
def flipped(file: Path, draw: random.Random) -> Iterator[str]:
    """Flip one bit of a file, and put it back."""
    before = file.read_bytes()
    bit = draw.randrange(8 * len(before))
    changed = bytearray(before)
    changed[bit // 8] ^= 1 << bit % 8
    file.write_bytes(changed)
    try:
        yield f"bit {bit} of {file}"
    finally:
        file.write_bytes(before)


def refused_or_same(folder: Path, file: Path, draw: random.Random, read: Callable[[], Any], wanted: Any) -> bool:
    """Return whether a flipped bit was refused; fail if the number differs or the message names nothing in the folder."""
    with flipped(file, draw) as where:
        try:
            got = read()
        except InputError as error:
            got, message = None, str(error)
    if got is None:
        assert str(folder) in message, where
        assert any(cause in message for cause in CAUSES), (where, message)
        return True
    assert got == wanted, where
    return False


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def test_a_flipped_bit_in_a_saved_evaluation_is_refused_or_changes_nothing(tmp_path):
    wanted, store, draw = evaluation(), tmp_path / "saved.zarr", random.Random(0)
    du.save(wanted, store)
    files = files_of(store)
    refused = [refused_or_same(store, draw.choice(files), draw, lambda: du.load(store), wanted) for _ in range(60)]
    assert all(refused)  # no byte of a summary is without a digest
    assert du.load(store) == wanted


def test_what_is_whole_but_of_another_summary_is_refused(tmp_path):
    for seed in (1, 2):
        du.save(evaluation(seed), tmp_path / f"{seed}.zarr")
    names = [path.relative_to(tmp_path / "1.zarr") for path in files_of(tmp_path / "1.zarr")]
    unlike = [n for n in names if (tmp_path / "1.zarr" / n).read_bytes() != (tmp_path / "2.zarr" / n).read_bytes()]
    assert len(unlike) > 5
    for name in unlike:
        shutil.copytree(tmp_path / "1.zarr", tmp_path / "mixed.zarr")
        shutil.copy(tmp_path / "2.zarr" / name, tmp_path / "mixed.zarr" / name)
        with pytest.raises(InputError, match="not as dask-uncert wrote it"):
            du.load(tmp_path / "mixed.zarr")
        shutil.rmtree(tmp_path / "mixed.zarr")


@pytest.mark.parametrize("change", [lambda a: -a, lambda a: a[None], lambda a: a[:2]])
def test_counts_that_cannot_be_are_refused_by_name(tmp_path, change):
    whole = evaluation()
    arrays = [(p, d, change(a) if p == "distributions/0/histogram" else a) for p, d, a in whole.arrays()]
    arrays = [(p, d if a.ndim == len(d) else ("more", *d), a) for p, d, a in arrays]
    write_counts(str(tmp_path / "a.zarr"), whole.frame(), arrays)
    with pytest.raises(InputError, match=r"a\.zarr/total/distributions/0/\w+ is not as"):
        du.load(tmp_path / "a.zarr")


def test_a_chunk_of_ours_has_a_checksum(tmp_path):
    du.save(evaluation(), tmp_path / "a.zarr")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(64, 64)).astype("f4"))
    du.convert(tmp_path / "x.npy", tmp_path / "x.zarr", dims=["y", "x"], chunks=[16, 16], shards=[32, 32])
    assert ZarrArray(str(tmp_path / "x.zarr"), "data", "x").has_checksum
    for store in ("a.zarr", "x.zarr"):
        for _, array in zarr.open_group(tmp_path / store, mode="r").members(max_depth=None):
            if isinstance(array, zarr.Array):
                assert any(codec.to_dict()["configuration"].get("checksum") for codec in array.compressors)


def flips_in_a_scene(tmp_path, client, flips: int) -> int:
    """Return how many bits, flipped in files of a scene's output, its report, merge or load refuse."""
    scene = Scene(tmp_path, (40, 30), 20, maps=["entropy", "correct"])
    out, draw = tmp_path / "out", random.Random(1)
    du.run(scene.job, cluster=client)

    def read():
        du.merge(tmp_path / "sum", [out], fresh=True)
        printed = read_results(out)
        du.report(out)
        names = ["results.json", *(f"tables/{path.name}" for path in (out / "tables").iterdir())]
        return printed, du.load(out).frame(), [(out / name).read_bytes() for name in names]

    wanted = read()
    files = [*files_of(out / "summary.zarr"), *files_of(out / "maps.zarr"), out / "run.json", out / "results.json"]
    return sum(refused_or_same(out, draw.choice(files), draw, read, wanted) for _ in range(flips))


@pytest.mark.slow
def test_flipped_bits_in_a_scene_are_refused_or_change_nothing(tmp_path, shared_client, without_pictures):
    assert flips_in_a_scene(tmp_path, shared_client, 5) > 2


@pytest.mark.slow
def test_many_flipped_bits_in_a_scene_are_refused_or_change_nothing(tmp_path, shared_client, without_pictures):
    assert (
        flips_in_a_scene(tmp_path, shared_client, 120) > 100
    )  # coordinates of the maps, and the rest of them, are not read


@pytest.mark.slow
def test_many_flipped_bits_in_a_cohort_are_refused_or_change_nothing(tmp_path, shared_client, without_pictures):
    cohorts = [
        Cohort(tmp_path / name, patients, maps=["gini"], measures=["gini"])
        for name, patients in (("a", "PQRS"), ("b", "TUVW"))
    ]
    for cohort in cohorts:
        du.run(cohort.job(), cluster=shared_client)
    out, other, draw = cohorts[0].out, cohorts[1].out, random.Random(2)

    def read():
        du.merge(tmp_path / "sum", [out, other], fresh=True)
        du.report(out)
        return str(du.compare(out, out, replicates=5).rows()), cohorts[0].bits(tmp_path / "sum"), read_results(out)

    wanted = read()
    files = [*files_of(out / "summary.zarr"), *files_of(out / "maps.zarr"), out / "run.json"]
    refused = sum(refused_or_same(out, draw.choice(files), draw, read, wanted) for _ in range(120))
    assert refused > 60  # most files are maps of cases of which the page shows no picture


def checkpoints(tmp_path, flips: int) -> None:
    rng, draw = np.random.default_rng(0), random.Random(3)
    cubes = {
        "probabilities": Cube("probabilities", rng.dirichlet(np.ones(3), (12, 10)), ("y", "x", "class")),
        "reference": Cube("reference", rng.integers(0, 3, (12, 10)), ("y", "x")),
    }
    plan = prepare(SceneOptions(classes=list("abc"), measures=["gini"]), cubes, block=(6, 5))
    wanted = plan.compute()

    def read():
        return replace(plan, checkpoints=open_checkpoints(tmp_path / "out", "key", fresh=False)).compute()

    assert read() == wanted
    folder = tmp_path / "out.blocks"
    computed_again = 0
    for _ in range(flips):
        file = draw.choice([path for path in files_of(folder) if path.suffix in (".case", ".frame", ".json")])
        if not refused_or_same(folder, file, draw, read, wanted):
            computed_again += 1
            read()  # what was refused is there again
    assert computed_again > flips / 2


def test_a_damaged_checkpoint_is_computed_again(tmp_path, caplog):
    checkpoints(tmp_path, 6)
    assert "is damaged, or of another version: it is computed again" in caplog.text


@pytest.mark.slow
def test_any_damaged_checkpoint_is_computed_again(tmp_path):
    checkpoints(tmp_path, 100)


@pytest.mark.parametrize("key", ["made_by", "kind", "name", "id"])
def test_a_marker_without_one_of_its_keys_is_none(tmp_path, key):
    make_folder(tmp_path, "cases")
    assert marker_of(tmp_path)
    words = json.loads((tmp_path / MARKER).read_text())
    del words[key]
    (tmp_path / MARKER).write_text(json.dumps(words))
    assert not marker_of(tmp_path)
    with pytest.raises(InputError):
        check_owned(tmp_path)


def test_what_a_user_adds_to_a_map_is_the_users_own(tmp_path):
    writer = MapWriter(str(tmp_path / "maps.zarr"))
    writer.create({"gini": ("float32", np.nan, {"units": "1"})}, "yx", (4, 6), (2, 3), {})
    writer.write({"gini": np.ones((4, 6), "f4")}, (0, 0))
    maps = zarr.open_group(tmp_path / "maps.zarr", mode="r+")
    maps.attrs["project"] = maps["gini"].attrs["note"] = "looks odd in the north"
    with pytest.warns(ZarrUserWarning):
        zarr.consolidate_metadata(maps.store)
    assert (preview(str(tmp_path / "maps.zarr"), "gini")[0] == 1).all()
    assert dict(zarr.open_array(tmp_path / "maps.zarr/gini").attrs) == {"units": "1", "note": "looks odd in the north"}
    maps["gini"].attrs["units"] = "2"
    with pytest.raises(InputError, match=r"gini/zarr\.json is not as dask-uncert wrote it \(its shape, codecs or"):
        preview(str(tmp_path / "maps.zarr"), "gini")
    (tmp_path / "maps.zarr/gini/digest.json").unlink()
    with pytest.raises(InputError, match=r"gini is not as dask-uncert wrote it \(it lacks digest\.json\)"):
        preview(str(tmp_path / "maps.zarr"), "gini")
