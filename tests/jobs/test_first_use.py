"""What a run says while code is compiled for the first time, and where compiled code is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dask_uncert.blocks.kernels import cache
from dask_uncert.jobs.first_use import compiling

KERNELS = Path(cache.__file__).parent


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The folder for numba's files, empty."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return tmp_path


def test_the_first_run_on_a_machine_says_how_long_it_compiles(elsewhere):
    assert compiling("local") == "compile (once on this machine, up to a minute), read"
    assert compiling("tcp://scheduler:8786") == "compile, read"  # its workers keep their own
    index = elsewhere / f"{KERNELS.name}_0a1b" / "binary.count-12.py311.nbi"
    index.parent.mkdir()
    index.touch()
    assert compiling("local") == "compile, read"
    os.utime(index, (1, 1))  # of an older version
    assert "once on this machine" in compiling("local")


def test_where_nothing_can_be_kept_a_run_says_so_and_does_not_promise_once(monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, "")
    monkeypatch.setattr(cache, "_can_write", lambda folder: False)
    with pytest.warns(cache.NoCacheWarning, match=f"every run compiles it again. Set {cache.VARIABLE}"):
        cache.ensure_cache()
    assert Path(os.environ[cache.VARIABLE]).is_dir()
    assert compiling("local") == "compile (up to a minute), read"


def test_compiled_code_beside_the_package_or_in_a_home_is_found(tmp_path, monkeypatch):
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "kernels" / "cache.py"))
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/cache.py").touch()
    os.utime(tmp_path / "kernels/cache.py", (1, 1))
    assert "once on this machine" in compiling("local")
    for folder in ("numba/kernels_0a1b", "kernels/__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.b-1.py311.nbi").touch()
        assert compiling("local") == "compile, read"
        (tmp_path / folder / "a.b-1.py311.nbi").unlink()
