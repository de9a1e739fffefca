"""The rules of DESIGN.md, checked by reading the source: floors, doors, names, sizes, a light import."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import ROOT

PACKAGE = ROOT / "dask_uncert"
ORDER = (  # a module imports from lower floors and from its own folder, never sideways
    "errors < formulas < blocks.kernels, summaries < metrics, io < clusters, inputs < spec < blocks"
    " < execution, reports < jobs < cli < __init__, __main__"
)
FLOOR = {name: n for n, names in enumerate(ORDER.split(" < ")) for name in names.split(", ")}
DOORS = """
    numba: blocks.kernels; llvmlite: blocks.kernels; dask: execution.graph clusters; distributed: clusters jobs.submit jobs.drive
    dask_jobqueue: clusters.jobqueue; fsspec: io.paths; upath: io.paths; zarr: io inputs.arrays; zarrs: io.readers.zarr
    nibabel: io.readers.nifti io.writers.nifti; rasterio: io.readers.geotiff io.writers.geotiff io.reference_systems
    pyproj: io.reference_systems; spectral: io.readers.envi_header; h5py: io.readers.netcdf4; h5netcdf: io.writers.netcdf
    xarray: summaries metrics inputs io execution; pandas: jobs.cohort.manifest; pydantic: io.validation io.output_folder clusters.config spec jobs
    matplotlib: reports.figures; bokeh: reports.page.bokeh_charts; jinja2: reports.page; markupsafe: reports.page
    click: cli; rich: cli.console
"""  # library: the only folders and modules that import it
DOOR = {
    library.strip(): doors.split()
    for library, doors in (door.split(":") for line in DOORS.strip().splitlines() for door in line.split(";"))
}
EVERYWHERE = {"numpy", "scipy", "yaml", "packaging", "psutil", "lazy_loader", *sys.stdlib_module_names}
LONGEST, MOST_PARAMETERS = 350, 12
TOP = (
    "dask_uncert workflows cluster examples tests docs .ci .github .git .gitignore .gitattributes "
    "pyproject.toml README.md LICENSE CHANGELOG.md DESIGN.md CONTRIBUTING.md CITATION.cff"
)


class Import(NamedTuple):
    """An imported name with its module, its line, and whether only type checkers see it."""

    name: str
    line: int
    typing: bool


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


@cache
def imports(package: Path, path: Path) -> list[Import]:
    """Every import of a module of the package, inside functions too, with full dotted names."""
    inside, found, typing = ("dask_uncert", *path.with_suffix("").parts), [], set()
    for node in nodes(package / path):  # from the outside in
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing |= {id(part) for child in node.body for part in ast.walk(child)}
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = inside[: -node.level] if node.level else ()
            origin = ".".join((*start, *([node.module] if node.module else [])))
            names = [f"{origin}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
            names = ["by string"]
        else:
            continue
        found += [Import(name, node.lineno, id(node) in typing) for name in names]
    return sorted(found, key=lambda one: one.line)


def floor_of(dotted: str) -> str:
    return "blocks.kernels" if f"{dotted}.".startswith("blocks.kernels.") else dotted.split(".")[0]


def problems(package: Path) -> Iterator[str]:
    """Everything in a package that breaks a rule on imports, sizes or parameters."""
    for path in sorted(file.relative_to(package) for file in package.rglob("*.py")):
        dotted = ".".join(path.with_suffix("").parts)
        folder = floor_of(dotted)
        if folder not in FLOOR:
            yield f"{path} has no floor; these have: {', '.join(FLOOR)}"
            continue
        for name, line, typing in imports(package, path):
            library, _, rest = name.partition(".")
            other = floor_of(rest) if floor_of(rest) in FLOOR else "__init__"
            doors = DOOR.get(library, [])
            if library == "dask_uncert":
                if other != folder and FLOOR[other] >= FLOOR[folder]:
                    yield f"{path}:{line} imports {name}, which is not on a lower floor"
            elif not (typing or library in EVERYWHERE or any(f"{dotted}.".startswith(f"{d}.") for d in doors)):
                yield f"{path}:{line} imports {name}; its door is {' or '.join(doors) or 'none'}"
        if (lines := (package / path).read_text(encoding="utf-8").count("\n")) > LONGEST:
            yield f"{path} has {lines} lines: cut it by idea"
        for node in nodes(package / path):
            if isinstance(node, ast.FunctionDef) and folder != "blocks.kernels":
                number = len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
                if number > MOST_PARAMETERS:
                    yield f"{path}:{node.lineno} {node.name} has {number} parameters: group them"


def test_the_package_keeps_its_rules() -> None:
    assert not list(problems(PACKAGE))


def test_the_rules_see_what_they_are_meant_to_see(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "odd.py").touch()
    (tmp_path / "blocks" / "tiles.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dask\n"
        "def f(a, b, c, d, e, f, g, h, i, j, k, l, *, m):\n    from ..jobs.load import Job\n"
        "    from dask_uncert import cli\n    import dask.array\n    import_module('x')\n" + "\n" * 350
    )
    assert [problem.split("/")[-1] for problem in problems(tmp_path)] == [
        "tiles.py:5 imports dask_uncert.jobs.load.Job, which is not on a lower floor",
        "tiles.py:6 imports dask_uncert.cli, which is not on a lower floor",
        "tiles.py:7 imports dask.array; its door is execution.graph or clusters",
        "tiles.py:8 imports by string; its door is none",
        "tiles.py has 358 lines: cut it by idea",
        "tiles.py:4 f has 13 parameters: group them",
        f"odd.py has no floor; these have: {', '.join(FLOOR)}",
    ]


def test_no_imports_go_in_a_circle() -> None:
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    arrows = {}
    for module, path in paths.items():
        names = [name for name, _, _ in imports(PACKAGE, path.relative_to(PACKAGE))]
        arrows[module] = {*names, *(name.rpartition(".")[0] for name in names)} & {*paths}
    while leaves := [module for module, targets in arrows.items() if not targets & {*arrows}]:
        arrows = {module: targets for module, targets in arrows.items() if module not in leaves}
    assert not arrows


def test_what_stands_at_the_top_and_what_files_are_called() -> None:
    files = [path for path in ROOT.glob("*/**/*.py") if path.name in ("utils.py", "core.py", "base.py")]
    assert not [*files, *ROOT.glob("*/**/*_impl.py")]
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]
    assert {p.name for p in ROOT.iterdir() if not any(fnmatch(p.name, name) for name in ignored)} <= {*TOP.split(" ")}
    assert len([*PACKAGE.glob("*/__init__.py")]) <= 12
    assert len([path for path in PACKAGE.iterdir() if path.is_file()]) <= 5


def test_importing_the_package_is_light_and_starts_nothing() -> None:
    code = (
        "import sys, time; begin = time.process_time(); import dask_uncert; print(time.process_time() - begin);"
        "import threading; print(threading.active_count());"
        "print(*{'numba', 'matplotlib', 'distributed', 'dask', 'zarr', 'numpy'} & {*sys.modules})"
    )
    run = {"capture_output": True, "text": True, "check": True}
    outputs = [subprocess.run([sys.executable, "-c", code], **run).stdout.split() for _ in range(3)]
    assert [threads_and_modules for _, *threads_and_modules in outputs] == [["1"]] * 3
    assert min(float(seconds) for seconds, *_ in outputs) < 0.1


def test_a_job_and_a_report_start_without_libraries_that_only_others_need() -> None:
    heavy = "{'xarray', 'pandas', 'dask.array', 'bokeh', 'matplotlib', 'numba', 'distributed', 'dask', 'psutil'} & {*sys.modules}"
    code = f"import sys, dask_uncert.jobs.report; print({heavy}); import dask_uncert.jobs.run; print(*sorted({heavy}))"
    run = {"capture_output": True, "text": True, "check": True}
    assert subprocess.run([sys.executable, "-c", code], **run).stdout.splitlines() == ["set()", "dask psutil"]


def test_public_names_are_there_and_have_examples() -> None:
    package = importlib.import_module("dask_uncert")
    for name in package.__all__:
        value = getattr(package, name)
        assert value.__name__ == name
        assert ">>> " in value.__doc__ or issubclass(value, Exception), name
    with pytest.raises(AttributeError, match="attribute nothing"):
        package.nothing  # noqa: B018
