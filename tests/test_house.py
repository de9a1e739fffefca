"""The house rules of DESIGN.md, held by reading the source: floors, doors, names, sizes, a light import."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dask_uncert"
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))

FLOORS = (  # bottom to top; a module imports from lower floors and from its own folder, never sideways
    ("errors",),
    ("places",),
    ("formulas",),
    ("kernels",),
    ("summaries",),
    ("request",),
    ("stored", "decoding", "gaps", "wrapped"),
    ("members", "one_vs_rest", "tiling"),
    ("counting",),
    ("block", "regression_block"),
    ("soft_words", "tile_words"),
    ("inspection", "orientation", "words", "joint_sizes"),
    ("coordinates",),
    ("grids",),
    ("cubes", "graphs", "stores", "manifest", "case_files"),
    ("checkpoints", "ordering", "packing", "saving"),
    ("block_reads", "block_tasks", "inputs", "overlaps", "pixel_sizes"),
    ("plan", "regression_plan", "arrays", "raters"),
    ("room",),
    ("evaluate",),
    ("regression", "cohorts"),
    ("cluster_file",),
    ("batch_clusters", "watching"),
    ("mpi_clusters",),
    ("cluster_memory",),
    ("clusters",),
    ("streams",),
    ("suspects",),
    ("reports",),
    ("outputs",),
    ("convert", "exports"),
    ("cohort_outputs",),
    ("cohort_merges", "compare"),
    ("cohort_reports",),
    ("job_words",),
    ("cohort_words",),
    ("jobs",),
    ("cohort_jobs", "run_facts"),
    ("cohort_runs",),
    ("finished", "runs"),
    ("terminal",),
    ("submissions",),
    ("detached",),
    ("file_commands", "job_commands"),
    ("cli",),
    ("__init__",),
)
ONLY = {  # what may be imported at all, where that is less than every lower floor
    "cluster_file": {"errors"},
    "batch_clusters": {"cluster_file", "errors"},
    "mpi_clusters": {"batch_clusters", "cluster_file", "errors"},
    "cluster_memory": {"mpi_clusters", "cluster_file", "errors"},
    "clusters": {"batch_clusters", "mpi_clusters", "cluster_memory", "cluster_file", "errors"},
    "outputs": {"errors", "places"},
}
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}

DOORS = {  # library: the only modules and folders that import it
    "numba": ("kernels",),
    "dask": ("graphs", "clusters", "cluster_memory", "batch_clusters", "watching"),
    "distributed": ("clusters", "cluster_memory", "batch_clusters", "mpi_clusters", "watching", "detached"),
    "dask_jobqueue": ("batch_clusters",),
    "fsspec": ("places",),
    "upath": ("places",),
    "zarr": ("stores",),
    "zarrs": ("stores.zarr",),
    "nibabel": ("stores.nifti", "stores.nifti_writing"),
    "rasterio": ("stores.geotiff", "stores.rasters"),
    "spectral": ("stores.envi_headers",),
    "h5py": ("stores.netcdf",),
    "h5netcdf": ("stores.netcdf_writing",),
    "xarray": ("summaries", "cubes", "stores", "evaluate"),
    "matplotlib": ("reports",),
    "bokeh": ("reports.charts",),
    "jinja2": ("reports",),
    "pandas": ("manifest",),
    "pydantic": ("jobs", "job_words", "cohort_words"),
    "click": ("cli", "file_commands", "job_commands", "terminal"),
    "rich": ("terminal",),
}
NO_NAMES = ("utils.py", "core.py", "base.py", "*_impl.py")
LONGEST = 300
TOP = {
    *("dask_uncert", "workflows", "cluster", "examples", "tests", "docs"),
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "DESIGN.md"),
    *(".git", ".gitignore", ".gitattributes", ".ci", ".github"),
}


def test_every_public_function_has_a_doctest():
    import dask_uncert as du

    named = {name: getattr(du, name) for name in du.__all__}
    bare = [
        name
        for name, one in named.items()
        if not (isinstance(one, type) and issubclass(one, Exception)) and ">>> " not in (one.__doc__ or "")
    ]
    assert not bare


class Import(NamedTuple):
    """One imported name: the module it comes from, its line, and whether only type checkers see it."""

    name: str
    line: int
    typing: bool


def imports(path: Path) -> list[Import]:
    """Every import of a module of the package, inside functions too, with full dotted names."""
    inside = ".".join(("dask_uncert", *path.with_suffix("").parts))

    def walk(node: ast.AST, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(inside.split(".")[: -node.level]) if node.level else ""
            origin = ".".join(part for part in (start, node.module) if part)
            yield from (Import(f"{origin}.{alias.name}", node.lineno, typing) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from walk(child, True)
            for child in node.orelse:
                yield from walk(child, typing)
        else:
            for child in ast.iter_child_nodes(node):
                yield from walk(child, typing)

    return list(walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8")), False))


def place(path: Path) -> str:
    """The first name below the package: a folder, or a file without its suffix."""
    return path.with_suffix("").parts[0]


def within(path: Path, door: str) -> bool:
    module = ".".join(path.with_suffix("").parts)
    return module == door or module.startswith(door + ".")


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_imports_from_lower_floors_only(path: Path) -> None:
    here = place(path)
    assert here in FLOOR_OF, f"{path} has no floor: add it to FLOORS and to DESIGN.md"
    for found in imports(path):
        origin, *rest = found.name.split(".")
        if origin != "dask_uncert" or not rest:
            continue
        there = rest[0] if rest[0] in FLOOR_OF else "__init__"
        if there == here and (PACKAGE / here).is_dir():
            continue
        where = f"{path}:{found.line} imports {found.name}"
        assert FLOOR_OF[there] < FLOOR_OF[here], f"{where}, which is not on a lower floor"
        assert there in ONLY.get(here, {there}), f"{where}, but may only import {sorted(ONLY[here])}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_each_big_library_has_one_door(path: Path) -> None:
    for found in imports(path):
        doors = DOORS.get(found.name.split(".")[0])
        if doors is not None and not found.typing:
            open_here = any(within(path, door) for door in doors)
            assert open_here, f"{path}:{found.line} imports {found.name}; its door is {' or '.join(doors)}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_is_one_idea(path: Path) -> None:
    lines = len((PACKAGE / path).read_text(encoding="utf-8").splitlines())
    assert lines < LONGEST, f"{path} has {lines} lines: cut it by idea"


def test_no_file_is_named_for_nothing() -> None:
    folders = [ROOT / name for name in ("dask_uncert", "workflows", "examples", "tests")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    assert not [path for path in files if any(fnmatch(path.name, name) for name in NO_NAMES)]


def test_only_these_stand_at_the_top() -> None:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.strip("/") for line in lines if line and not line.startswith("#")]
    found = {path.name for path in ROOT.iterdir() if not any(fnmatch(path.name, name) for name in ignored)}
    assert found <= TOP


def test_the_rules_see_what_they_are_meant_to_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "block.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dask\n"
        "def f():\n    from .jobs import Job\n    from dask_uncert import cli\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    names = {(found.name, found.typing) for found in imports(Path("block.py"))}
    assert {("dask", True), ("dask_uncert.jobs.load.Job", False), ("dask_uncert.cli.main", False)} <= names
    with pytest.raises(AssertionError, match=r"block\.py:5 imports dask_uncert\.jobs\.Job, which is not"):
        test_a_module_imports_from_lower_floors_only(Path("block.py"))
    (tmp_path / "block.py").write_text("def f():\n    import dask.array\n")
    with pytest.raises(AssertionError, match=r"block\.py:2 imports dask\.array; its door is graphs"):
        test_each_big_library_has_one_door(Path("block.py"))


def test_importing_the_package_is_light_and_starts_nothing() -> None:
    code = (
        "import sys, time; begin = time.perf_counter(); import dask_uncert; print(time.perf_counter() - begin);"
        "import threading; print(threading.active_count());"
        "print(*(name for name in ('numba', 'matplotlib', 'distributed', 'dask', 'zarr') if name in sys.modules))"
    )
    seconds = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        time, threads, *loaded = done.stdout.split()
        assert threads == "1"
        assert not loaded
        assert not done.stderr
        seconds.append(float(time))
    assert min(seconds) < 1.5


def test_every_public_name_is_there_and_type_checkers_see_the_same() -> None:
    package = importlib.import_module("dask_uncert")
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    assert set(package.__all__) <= set(dir(package))
    homes = {f"dask_uncert.{home}.{name}" for home, names in package._HOMES.items() for name in names}
    typed = {found.name for found in imports(Path("__init__.py")) if found.typing}
    assert typed == homes
    assert {name.rsplit(".", 1)[1] for name in typed} == set(package.__all__)
    assert package.__version__.count(".") >= 2
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_the_function_evaluate_wins_over_its_module() -> None:
    code = "import dask_uncert.evaluate, dask_uncert as du; assert callable(du.evaluate), du.evaluate"
    subprocess.run([sys.executable, "-c", code], check=True)
