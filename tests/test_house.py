"""The rules of DESIGN.md, checked by reading the source: floors, doors, names, sizes, a light import."""

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

from tests.support import ROOT

PACKAGE = ROOT / "dask_uncert"
FLOORS = (  # bottom to top; a module imports from lower floors and from its own folder, never sideways
    {"errors"},
    {"formulas"},
    {"kernels", "summaries"},
    {"metrics", "io"},
    {"clusters", "inputs"},
    {"spec"},
    {"blocks"},
    {"execution", "reports"},
    {"jobs"},
    {"cli"},
    {"__init__"},
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
DOORS = {  # library: the only folders and modules that import it
    "numba": ("kernels",),
    "dask": ("execution.graph", "clusters"),
    "distributed": ("clusters", "jobs.submit"),
    "dask_jobqueue": ("clusters.jobqueue",),
    "fsspec": ("io.paths",),
    "upath": ("io.paths",),
    "zarr": ("io",),
    "zarrs": ("io.readers.zarr",),
    "nibabel": ("io.readers.nifti", "io.writers.nifti"),
    "rasterio": ("io.readers.geotiff", "io.writers.geotiff"),
    "spectral": ("io.readers.envi_header",),
    "h5py": ("io.readers.netcdf4",),
    "h5netcdf": ("io.writers.netcdf",),
    "xarray": ("summaries", "metrics", "inputs", "io", "execution"),
    "matplotlib": ("reports.figures",),
    "bokeh": ("reports.page.bokeh_charts",),
    "jinja2": ("reports.page", "reports.results.regression"),
    "markupsafe": ("reports.page",),
    "pandas": ("jobs.cohort.manifest",),
    "pydantic": ("spec", "jobs"),
    "click": ("cli",),
    "rich": ("cli.console",),
}
EVERYWHERE = {"numpy", "scipy", "yaml", "packaging", "psutil", "lazy_loader"}
NO_NAMES = ("utils.py", "core.py", "base.py", "*_impl.py")
LONGEST, MOST_PARAMETERS = 350, 12
TOP = {
    *("dask_uncert", "workflows", "cluster", "examples", "tests", "docs"),
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "DESIGN.md"),
    *(".git", ".gitignore", ".gitattributes", ".ci", ".github"),
}


class Import(NamedTuple):
    """An imported name with the module it comes from, its line, and whether only type checkers see it."""

    name: str
    line: int
    typing: bool


def modules(package: Path) -> list[Path]:
    return sorted(path.relative_to(package) for path in package.rglob("*.py"))


def imports(package: Path, path: Path) -> Iterator[Import]:
    """Every import of a module of the package, inside functions too, with full dotted names."""
    inside = ".".join(("dask_uncert", *path.with_suffix("").parts))

    def walk(node: ast.AST, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(inside.split(".")[: -node.level]) if node.level else ""
            origin = ".".join(part for part in (start, node.module) if part)
            yield from (Import(f"{origin}.{alias.name}", node.lineno, typing) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "import_module":
            yield Import(f"(by string) {ast.unparse(node)}", node.lineno, typing)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from walk(child, True)
            for child in node.orelse:
                yield from walk(child, typing)
        else:
            for child in ast.iter_child_nodes(node):
                yield from walk(child, typing)

    yield from walk(ast.parse((package / path).read_text(encoding="utf-8")), False)


def problems(package: Path) -> Iterator[str]:
    """Everything in a package that breaks a rule on imports, sizes or parameters."""
    for path in modules(package):
        here, dotted = path.with_suffix("").parts[0], ".".join(path.with_suffix("").parts)
        if here not in FLOOR:
            yield f"{path} has no floor: it belongs into one of the folders {', '.join(FLOOR)}"
            continue
        for found in imports(package, path):
            origin, *rest = found.name.split(".")
            where = f"{path}:{found.line} imports {found.name}"
            if origin == "dask_uncert" and rest:
                there = rest[0] if rest[0] in FLOOR else "__init__"
                if there != here and FLOOR[there] >= FLOOR[here]:
                    yield f"{where}, which is not on a lower floor"
            elif found.name.startswith("(by string)"):
                yield where
            elif origin not in sys.stdlib_module_names | EVERYWHERE and not found.typing:
                doors = DOORS.get(origin, ())
                if not any(f"{dotted}.".startswith(f"{door}.") for door in doors):
                    yield f"{where}; its door is {' or '.join(doors) or 'not in DOORS'}"
        text = (package / path).read_text(encoding="utf-8")
        if (lines := text.count("\n")) > LONGEST:
            yield f"{path} has {lines} lines: cut it by idea"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and here != "kernels":
                a = node.args
                number = len(a.posonlyargs + a.args + a.kwonlyargs)
                if number > MOST_PARAMETERS:
                    yield f"{path}:{node.lineno} {node.name} has {number} parameters: group what belongs together"


def test_the_package_keeps_its_rules() -> None:
    assert not list(problems(PACKAGE))


def test_no_imports_go_in_a_circle() -> None:
    names = {".".join(("dask_uncert", *path.with_suffix("").parts)): path for path in modules(PACKAGE)}
    arrows = {
        name: {f.name if f.name in names else f.name.rpartition(".")[0] for f in imports(PACKAGE, path)}
        & {*names}
        for name, path in names.items()
    }
    while leaves := [name for name, targets in arrows.items() if not targets & {*arrows}]:
        for name in leaves:
            del arrows[name]
    assert not arrows


def test_names_and_top_level() -> None:
    folders = [ROOT / name for name in ("dask_uncert", "workflows", "examples", "tests")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    assert not [path for path in files if any(fnmatch(path.name, name) for name in NO_NAMES)]
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.strip("/") for line in lines if line and not line.startswith("#")]
    found = {path.name for path in ROOT.iterdir() if not any(fnmatch(path.name, name) for name in ignored)}
    assert found <= TOP


def test_the_rules_see_what_they_are_meant_to_see(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "odd.py").touch()
    (tmp_path / "blocks" / "tiles.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dask\n"
        "def f(a, b, c, d, e, f, g, h, i, j, k, l, *, m):\n    from ..jobs.load import Job\n"
        "    from dask_uncert import cli\n    import dask.array\n    import_module('x')\n" + "\n" * 350
    )
    found = "\n".join(problems(tmp_path))
    assert "odd.py has no floor" in found
    assert "tiles.py:5 imports dask_uncert.jobs.load.Job, which is not" in found
    assert "tiles.py:6 imports dask_uncert.cli, which" in found
    assert "tiles.py:7 imports dask.array; its door is execution.graph" in found
    assert "tiles.py:8 imports (by string)" in found
    assert "has 358 lines" in found
    assert "f has 13 parameters" in found
    assert len(found.splitlines()) == 7


def test_importing_the_package_is_light_and_starts_nothing() -> None:
    code = (
        "import sys, time; begin = time.perf_counter(); import dask_uncert; print(time.perf_counter() - begin);"
        "import threading; print(threading.active_count());"
        "print(*(name for name in ('numba', 'matplotlib', 'distributed', 'dask', 'zarr') if name in sys.modules))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in "123"
    ]
    assert {(*run.stdout.split()[1:],) for run in runs} == {("1",)}
    assert min(float(run.stdout.split()[0]) for run in runs) < 0.1
    assert not any(run.stderr for run in runs)


def test_public_names_are_there_and_documented() -> None:
    package = importlib.import_module("dask_uncert")
    assert {*package.__all__} <= {*dir(package)}
    for name in package.__all__:
        value = getattr(package, name)
        is_error = isinstance(value, type) and issubclass(value, Exception)
        assert value.__name__ == name
        assert is_error or ">>> " in value.__doc__, name
    with pytest.raises(AttributeError, match="attribute nothing"):
        package.nothing  # noqa: B018
