"""Data saved in another format version are refused in one clear sentence; a cached case is computed again."""

import numpy as np
import pytest
import zarr

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io import summary_cache
from dask_uncert.io.format_version import FORMAT
from dask_uncert.io.maps import MapWriter, preview
from dask_uncert.io.stack_store import read_cases
from dask_uncert.io.summary_cache import CaseFolder, Frame


@pytest.fixture
def evaluation():
    return du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1, None, "2"])
def test_another_version_is_refused_with_both_versions_and_what_to_do(tmp_path, evaluation, version):
    du.save(evaluation, tmp_path / "summary.zarr")
    maps = MapWriter(str(tmp_path / "maps.zarr"))
    maps.create({"gini": ("float32", np.nan, {})}, ("y", "x"), (4, 4), (4, 4), {})
    for name in ("summary.zarr", "maps.zarr"):
        zarr.open_group(str(tmp_path / name), mode="r+").attrs["format"] = version
    wrong = (
        rf"{{name}} was written by another version of dask_uncert: it has format {version}, this version reads "
        rf"format {FORMAT}. Compute it again, or install the version that wrote it"
    )
    for read in (du.load, read_cases, lambda store: du.save(evaluation, store), lambda _: du.load(tmp_path)):
        with pytest.raises(InputError, match=wrong.format(name="summary.zarr")):
            read(str(tmp_path / "summary.zarr"))
    with pytest.raises(InputError, match=wrong.format(name="maps.zarr")):
        preview(str(tmp_path / "maps.zarr"), "gini")


def test_a_group_of_another_tool_is_refused_and_never_overwritten(tmp_path, evaluation):
    zarr.open_group(str(tmp_path / "other.zarr"), mode="w").create_array("a", shape=(2,), dtype="u1")
    for read in (du.load, read_cases, lambda store: du.save(evaluation, store)):
        with pytest.raises(InputError, match=r"other\.zarr is a Zarr group, but holds no summary of dask_uncert"):
            read(str(tmp_path / "other.zarr"))
    assert "a" in zarr.open_group(str(tmp_path / "other.zarr"), mode="r")


def test_a_cached_case_of_another_version_is_computed_again(tmp_path, evaluation, monkeypatch):
    folder, summaries = CaseFolder(tmp_path), {"": (Frame.of(evaluation), evaluation)}
    with monkeypatch.context() as patch:
        patch.setattr(summary_cache, "MAGIC", f"dask-uncert case {FORMAT - 1}\n".encode())
        folder.write("P1", "key", summaries, {})
        assert folder.read("P1", "key") is not None
    assert folder.read("P1", "key") is None
    folder.write("P1", "key", summaries, {})
    assert folder.read("P1", "key") is not None
