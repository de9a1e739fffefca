"""Property tests take the time they need: this suite also runs on busy machines."""

import os
import shutil
import time
from collections import Counter

import numpy as np
import pytest
import yaml
import zarr
from hypothesis import HealthCheck, settings

zarr.config.set({"array.write_empty_chunks": True})  # a chunk that a store lacks is refused

settings.register_profile("here", deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that need programs belong to the slow tier, and skip with a reason where one is missing."""
    for item in items:
        programs = [name for mark in item.iter_markers("needs") for name in mark.args]
        programs += ["chromium", "chromedriver"] if "driver" in getattr(item, "fixturenames", ()) else []
        missing = [name for name in programs if not (os.geteuid() == 0 if name == "root" else shutil.which(name))]
        if programs:
            item.add_marker(pytest.mark.slow)
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)}"))
    yield
    items[:] = in_order(items)


def in_order(items):
    """The first file has kernels of float64, those of formulas a few of float32: no two workers compile the same at once.

    Then come files of many tests first.
    """
    number = Counter(item.path for item in items)
    return sorted(
        items,
        key=lambda item: (item.path.name != "test_options.py", item.path.parent.name != "formulas", -number[item.path]),
    )


class Examples:
    """What is prepared for examples of docstrings, too; other fixtures here are for the files below only."""

    @pytest.fixture(autouse=True)
    def no_jobs(self, request, tmp_path_factory, monkeypatch):
        """Examples see no jobs that tests have left, whose clusters would be asked in vain."""
        if request.path.is_relative_to(request.config.rootpath / "dask_uncert"):
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def pytest_configure(config):
    config.option.loadscopereorder = False  # see `in_order`
    config.pluginmanager.register(Examples())


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """The list of submitted jobs is not that of the person who runs the tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def many_blocks():
    """Small scenes of tests have many blocks, as large ones have."""
    from dask_uncert.execution import chunking

    with pytest.MonkeyPatch.context() as patch:
        for least in ("LEAST_PIXELS", "LEAST_IN_MEMORY", "LEAST_BYTES"):
            patch.setattr(chunking, least, 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_second_process():
    """Tests run in as many processes as there are processors, each of which compiles."""
    from dask_uncert.execution import plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "compile_ahead", lambda: None)
        yield


@pytest.fixture(scope="module")
def shared_client():
    """One local cluster of threads for tests that run many small jobs."""
    from dask_uncert.clusters.connect import connect

    with connect("local", threads=2) as client:
        yield client


@pytest.fixture(autouse=True)
def idle_cluster(request):
    """Wait for tasks that an earlier test left running: numba catches the warnings of all threads while it compiles."""
    if "shared_client" not in request.fixturenames:
        return
    client = request.getfixturevalue("shared_client")
    while any(client.run(lambda dask_worker: len(dask_worker.active_threads)).values()):
        time.sleep(0.02)


@pytest.fixture
def without_pictures(monkeypatch):
    """Runs in this process write no figures and no page: most of a small run."""
    from dask_uncert.reports import drawing, write

    monkeypatch.setattr(write, "figures_and_page", lambda *arguments: {})
    monkeypatch.setattr(drawing, "load_ahead", lambda: None)


@pytest.fixture(scope="session")
def long_job(tmp_path_factory):
    """A scene whose blocks take a worker some seconds in all, and its evaluation on this machine."""
    import dask_uncert as du

    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(0)
    p = rng.random((3000, 2000, 6), dtype="f4")
    p /= p.sum(axis=-1, keepdims=True)
    np.save(folder / "p.npy", p)
    np.save(folder / "y.npy", rng.integers(0, 6, p.shape[:2]).astype("u1"))
    words = {
        "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(6)}, "output": "out",
        "measures": ["gini", "entropy", "fisher_rao", "renyi", "tsallis", "variance"],
        "soft_confusion": [{"class": "1", "thresholds": [0.3], "sigmas": [0, 0.1], "dampings": [0, 1], "uncertainty": "entropy"}],
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.npy", "dims": ["y", "x"]},
        },
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(words))
    with pytest.MonkeyPatch.context() as patch:
        without_pictures.__wrapped__(patch)
        return folder / "job.yaml", du.run(folder / "job.yaml")


@pytest.fixture
def dask_uncert_command(shared_client, without_pictures, monkeypatch, capsys):
    """Call the console script in this process, on a shared cluster, without figures and page: most of a small run.

    Gives exit status, stdout and stderr of `dask-uncert WORDS...`.
    """
    from contextlib import nullcontext

    from dask_uncert.cli import main
    from dask_uncert.clusters import connect as connect_cluster

    monkeypatch.setattr(connect_cluster, "_start_local", lambda local: nullcontext(shared_client))
    monkeypatch.delenv("COLUMNS", raising=False)  # lines are as long as they are

    def call(*words):
        monkeypatch.setattr("sys.argv", ["dask-uncert", *map(str, words)])
        capsys.readouterr()
        try:
            main.main()
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
        said = capsys.readouterr()
        return status, said.out, said.err

    return call
