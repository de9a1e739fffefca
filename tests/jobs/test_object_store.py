"""Inputs on a real S3 server that fails and stalls: the same bits, nothing taken for zeros, retries counted, no secrets."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import yaml
import zarr

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from tests.support import object_stores


@pytest.fixture(scope="module")
def server():
    with object_stores.object_store() as found:
        yield found


@pytest.fixture(scope="module")
def scene(server):
    """A posterior and its reference in a bucket; the reference has chunks that are all 0."""
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), (48, 48)).astype("f4"), rng.integers(0, 3, (48, 48)).astype("u1")
    y[:16] = 0
    store = zarr.storage.FsspecStore.from_url("s3://bucket/scene.zarr")
    group = zarr.open_group(store, mode="w")
    for name, values, dims in (("p", p, ("y", "x", "class")), ("y", y, ("y", "x"))):
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=(16, 16, *values.shape[2:]),
            dimension_names=dims,
        )
        array[...] = values
    return p, y


def job(folder, output="out"):
    words = {
        "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(3)}, "measures": ["entropy"], "output": output,
        "inputs": {
            "probabilities": {"store": "s3://bucket/scene.zarr", "array": "p"},
            "reference": {"store": "s3://bucket/scene.zarr", "array": "y"},
        },
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(words))
    return folder / "job.yaml"


@pytest.mark.slow
def test_a_server_that_fails_and_stalls_changes_no_bit(tmp_path, server, scene, dask_uncert_command):
    p, y = scene
    server.failed, number = 0, itertools.count(1)
    with server.following(lambda environment: {0: "busy", 10: "slow"}.get(next(number) % 20)):
        status, _, said = dask_uncert_command("run", job(tmp_path), "--quiet")
    assert status == 0, said
    assert du.load(tmp_path / "out") == du.evaluate(p, y, classes=["0", "1", "2"], measures=["entropy"])
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert server.failed > 2
    assert 0 < record["reads_tried_again"] <= server.failed  # reads that fail together are tried again together
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file():
            assert object_stores.SECRET.encode() not in file.read_bytes(), file


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["busy", "denied"])
def test_a_passing_failure_is_not_a_missing_object(tmp_path, server, scene, dask_uncert_command, answer):
    p, y = scene
    once = {"/y/c/1/1": 1, "/p/zarr.json": 1, "prefix=scene.zarr%2Fp%2F&": 2}

    def rule(environment):
        asked = f"{environment['PATH_INFO']}?{environment.get('QUERY_STRING', '')}"
        for part, left in once.items():
            if left and part in asked:
                once[part] -= 1
                return answer
        return None

    with server.following(rule):
        status, _, said = dask_uncert_command(
            "run", job(tmp_path), "--quiet", "--set", "inputs.reference.missing_chunks=leave_out"
        )
    assert status == 0, said
    assert not any(once.values())
    assert du.load(tmp_path / "out") == du.evaluate(p, y, classes=["0", "1", "2"], measures=["entropy"])
    assert json.loads((tmp_path / "out" / "run.json").read_text())["reads_tried_again"] == 4


def test_a_server_that_goes_on_failing_ends_in_an_error(server, scene, monkeypatch):
    from dask_uncert.io import retries

    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(retries, "MAX_ATTEMPTS", {True: 3, False: 3})
    stored = open_stored("s3://bucket/scene.zarr", "p", "probabilities")
    before = retries.retry_count()[1]
    message = r"probabilities: s3://bucket/scene.zarr:p cannot be read at \[16:32, 16:32"
    with (
        server.following(lambda environment: "error" if "/p/c/1/1" in environment["PATH_INFO"] else None),
        pytest.raises(InputError, match=message),
    ):
        stored[16:32, 16:32, :]
    assert retries.retry_count()[1] - before == 2


@pytest.mark.slow
def test_an_object_that_is_gone_is_an_error_not_zeros(tmp_path, server, scene, dask_uncert_command):
    import s3fs

    files = s3fs.S3FileSystem()
    stored = open_stored("s3://bucket/scene.zarr", "y", "reference")
    assert stored.absent_chunks() == []
    content = files.cat("bucket/scene.zarr/y/c/2/1")
    files.rm("bucket/scene.zarr/y/c/2/1")
    try:
        with pytest.raises(InputError, match="c/2/1 is no longer in the store"):
            stored[32:, 16:32]
        status, _, said = dask_uncert_command("run", job(tmp_path, "gone"))
        assert status == 2
        assert "chunk (2, 1) of s3://bucket/scene.zarr:y is not in the store" in said
    finally:
        files.pipe("bucket/scene.zarr/y/c/2/1", content)
        files.invalidate_cache()


@pytest.mark.parametrize("place", ["inputs.reference.store", "output"])
def test_credentials_in_an_address_are_refused_and_not_repeated(tmp_path, server, scene, dask_uncert_command, place):
    address = f"s3://AKIA123:{object_stores.SECRET}@bucket/scene.zarr"
    status, _, said = dask_uncert_command("run", job(tmp_path), "--set", f"{place}={address}")
    assert status == 2
    assert "a s3:// address holds a password" in said
    assert object_stores.SECRET not in said
    assert [one.name for one in tmp_path.iterdir()] == ["job.yaml"]


def test_files_of_other_formats(tmp_path, server):
    import rasterio
    import s3fs

    values = np.arange(24, dtype="f4").reshape(2, 3, 4)
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", count=2, height=3, width=4, dtype="float32") as file:
        file.write(values)
    np.save(tmp_path / "a.npy", values)
    for name in ("a.tif", "a.npy"):
        s3fs.S3FileSystem().put(str(tmp_path / name), f"bucket/{name}")
        assert np.array_equal(open_stored(f"s3://bucket/{name}", "", "p")[...], values)
