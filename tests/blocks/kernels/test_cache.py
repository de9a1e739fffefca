"""Without a home and with a package that cannot be written, compiled code goes to a temporary folder, or nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.support import ROOT, cohorts, scenes

NO_TEMPORARY = "import tempfile; tempfile.tempdir = '/proc/nothing';"


@pytest.fixture
def homeless(tmp_path):
    """Run code with a copy of the package that cannot keep compiled code, in an environment without a home."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "dask_uncert", site / "dask_uncert", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "dask_uncert" / "blocks" / "kernels" / "__pycache__").touch()  # no folder, not even for root
    (tmp_path / "tmp").mkdir()
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH")
    changes = {"HOME": "/dev/null", "TMPDIR": str(tmp_path / "tmp"), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_OPT": "0"}
    environment = {key: value for key, value in os.environ.items() if key not in unset} | changes

    def run(code, *words):
        code = f"import sys; sys.path.insert(0, {str(site)!r}); {code}"
        command = [sys.executable, "-P", "-c", code, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    return run


@pytest.mark.parametrize("where", ["kept in {} until the run ends", "not kept at all"])
def test_compiled_code_without_a_place_is_said_once(homeless, tmp_path, where):
    start = NO_TEMPORARY if "not" in where else ""
    code = "import dask_uncert.blocks.kernels.measures as m; print(m.__file__, m.gather.stats.cache_path)"
    done = homeless(start + code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "site"))
    assert done.stderr.count("Warning: compiled code is") == 1
    assert where.partition("{")[0] in done.stderr
    assert "Set NUMBA_CACHE_DIR to a folder" in done.stderr
    assert not list((tmp_path / "tmp").glob("dask-uncert*"))


@pytest.mark.slow
def test_a_cohort_runs_without_a_place_for_compiled_code(homeless, tmp_path):
    cohort = cohorts.Cohort(tmp_path / "study", ["A", "B"], measures=[], cluster="cluster.yaml")
    (tmp_path / "study" / "cluster.yaml").write_text("{kind: local, processes: true, workers: 1, threads: 1}")
    done = homeless(scenes.QUIET, "run", cohort.job(), "--quiet")
    assert done.returncode == 0, done.stderr
    assert cohort.statuses() == dict.fromkeys("AB", "computed")
    assert done.stderr.count("compiled code is") == 1, done.stderr
    assert "warning: compiled code is kept in" in done.stderr
    assert "Traceback" not in done.stderr
