"""Property tests take the time they need: this suite also runs on busy machines."""

import pytest
import zarr
from hypothesis import HealthCheck, settings

zarr.config.set({"array.write_empty_chunks": True})  # a chunk that a store lacks is refused

settings.register_profile(
    "here", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("here")


@pytest.fixture(scope="module")
def shared_client():
    """One local cluster of threads for tests that run many small jobs."""
    from dask_uncert.clusters import connect

    with connect("local", threads=2) as client:
        yield client


@pytest.fixture
def dask_uncert_command(shared_client, monkeypatch, capsys):
    """Call the console script in this process, on a shared cluster, without figures and page: most of a small run.

    Gives exit status, stdout and stderr of `dask-uncert WORDS...`.
    """
    from contextlib import nullcontext

    from dask_uncert import cli, clusters
    from dask_uncert.reports import write

    monkeypatch.setattr(write, "drawings", lambda *given: {})
    monkeypatch.setattr(write, "write_figures", lambda *given: [])
    monkeypatch.setattr(write, "write_report", lambda *given: None)
    monkeypatch.setattr(clusters, "_start", lambda local: nullcontext(shared_client))

    def call(*words):
        monkeypatch.setattr("sys.argv", ["dask-uncert", *map(str, words)])
        capsys.readouterr()
        try:
            cli.main()
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
        said = capsys.readouterr()
        return status, said.out, said.err

    return call
