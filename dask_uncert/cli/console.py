"""Shared parts of commands: types of options, the options themselves, progress, and the printed results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dask_uncert.io.output_folder import Progress
    from dask_uncert.io.paths import AnyPath
    from dask_uncert.summaries.registry import AnyEvaluation

FILE = click.Path(path_type=Path)


class PathOrUrl(click.ParamType):  # type: ignore[type-arg]
    """A path or a URL."""

    name = "path"

    def convert(self, value: Any, param: Any, ctx: Any) -> AnyPath:
        """Return the path; InputError for a URL whose library is not installed."""
        from dask_uncert.io.paths import as_path

        return as_path(value)


class CommaSeparated(click.ParamType):  # type: ignore[type-arg]
    """Values separated by commas."""

    def __init__(self, parse: Callable[[str], Any], name: str) -> None:
        self.parse, self.name = parse, name

    def convert(self, value: Any, param: Any, ctx: Any) -> list[Any]:
        try:
            return [self.parse(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"expected {self.name} separated by commas, found {value!r}.", param, ctx)


def key_values(flag: str, name: str, parse: Callable[[str], Any], metavar: str, text: str) -> Callable[[Any], Any]:
    """Return a repeatable option of a key and a value, such as `KEY=VALUE`; the command gets a dictionary."""

    def pairs(ctx: Any, param: Any, values: tuple[str, ...]) -> dict[str, Any]:
        parsed = {}
        for value in values:
            key, equals, part = value.partition("=")
            if not (key and equals):
                raise click.BadParameter(f"expected {metavar}, found {value!r}.")
            try:
                parsed[key] = parse(part)
            except ValueError as error:
                raise click.BadParameter(f"{key}: {error}") from None
        return parsed

    return click.option(flag, name, multiple=True, callback=pairs, metavar=metavar, help=text)


def _yaml(text: str) -> Any:
    from dask_uncert.io.yaml_file import parse_yaml

    try:
        return parse_yaml(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not valid YAML: {error}") from None


def _new_file(ctx: Any, param: Any, path: Path | None) -> Path | None:
    if path is not None and os.path.lexists(path):
        raise click.BadParameter(f"{path} exists; name another file.")
    return path


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet."""
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise click.UsageError(f"{path} exists; name another file.") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}.") from None


PATH = PathOrUrl()
RUNNING = "a cluster file, or a tcp:// or tls:// address"
CLUSTER = f"local, {RUNNING}"
job_argument = click.argument("job", type=FILE)
folder_argument = click.argument("folder", type=PATH)
cluster_option = click.option("--cluster", help=f"{CLUSTER}; overrides the job's cluster.")
out_option = click.option("--out", type=PATH, help="Output folder; overrides the job's output.")
fresh_option = click.option("--fresh", is_flag=True, help="Recompute and replace an existing result.")
replace_option = click.option("--fresh", is_flag=True, help="Replace an existing result.")
quiet_option = click.option("--quiet", is_flag=True, help="Print errors only.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, in full precision.")
csv_option = click.option("--csv", "csv_file", type=FILE, callback=_new_file, help="Write a new CSV file.")
set_option = key_values(
    "--set", "overrides", _yaml, "KEY=VALUE", "Override a job key, e.g. `calibration.bins=20`. Repeatable."
)


@contextmanager
def progress(silent: bool) -> Iterator[Progress | None]:
    """Show a progress bar on a terminal, or else a line for each quarter."""
    if silent:
        yield None
        return
    if not sys.stderr.isatty():
        quarters: dict[str, int] = {}

        def line(stage: str, done: int, total: int) -> None:
            quarter = 4 * done // max(total, 1)
            if quarter > quarters.get(stage, -1):
                quarters[stage] = quarter
                click.echo(f"{stage}: {done} of {total}", err=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBar(*columns, console=Console(stderr=True)) as bar:
        bars: dict[str, Any] = {}

        def draw(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = bar.add_task(stage, total=total)
            bar.update(bars[stage], completed=done)

        yield draw


def show_headline(evaluation: AnyEvaluation, folder: AnyPath) -> None:
    """Print the main metrics of a result, and the paths of its folder and page."""
    from dask_uncert.metrics.calibration import expected_calibration_error
    from dask_uncert.metrics.classification import accuracy, kappa
    from dask_uncert.summaries import regression

    if isinstance(evaluation, regression.RegressionEvaluation):
        side = regression.regression_side(evaluation)
        numbers = (
            f"Area under the calibration curve {regression.regression_area(evaluation):.4f}"
            f"{f' ({side})' if side else ''}, "
            f"squared distance to the diagonal {regression.regression_distance(evaluation):.3g}."
        )
    else:
        numbers = (
            f"Accuracy {accuracy(evaluation):.4f}, kappa {kappa(evaluation):.4f}, "
            f"ECE {expected_calibration_error(evaluation):.4f}."
        )
    counted, left_out = int(evaluation.ledger.counted), int(evaluation.ledger.excluded.sum())
    click.echo(f"{counted:,} pixels counted, {left_out:,} left out. {numbers}")
    click.echo(f"Results: {folder}, page: {folder / 'report.html'}")


def plan_text(plan: Mapping[str, Any]) -> str:
    """Return a plan as text, one fact per line."""
    read = ", ".join(f"{name} {size(nbytes)}" for name, nbytes in plan["bytes_read"].items())
    total = size(sum(plan["bytes_read"].values()))
    if "cases" in plan:
        large = f", {plan['large_cases']} large and cut into blocks" if plan["large_cases"] else ""
        lines = [("cases", f"{plan['cases']} of {plan['patients']} patients{large}")]
    else:
        blocks = f"{plan['blocks']} of {sizes(plan['block'])}"
        lines = [("grid", sizes(plan["grid"])), ("blocks", blocks)]
    lines += [("tasks", plan["tasks"]), ("reads", f"{total} decoded: {read}")]
    if "chunk_reads" in plan:
        stored = [n for n in plan["bytes_stored"].values() if n is not None]
        lines += [("", f"about {size(sum(stored))} stored")] if stored else []
        lines += [("", f"{plan['chunk_reads']:,} chunk reads")]
    lines += [("time", _time(plan["estimate"]))] if "estimate" in plan else []
    lines += [
        ("memory", f"at most {size(plan['block_memory_bytes'])} per thread, plus Python itself"),
        ("maps", ", ".join(plan["maps"]) or "none"),
        ("writes", plan["output"]),
    ]
    lines += [("unusable", f"{name}: {reason}") for name, reason in plan.get("unusable", {}).items()]
    return "\n".join(f"{label:>8}  {value}" for label, value in lines)


def _time(estimate: Mapping[str, Any]) -> str:
    if "reason" in estimate:
        return f"unknown: {estimate['reason']}"
    work, threads = f"{_hours(3600 * estimate['core_hours'])} of a core", estimate["threads"]
    if threads is None:
        return f"{work}, without start and report; the cluster's threads are not known"
    return f"about {_hours(estimate['seconds'])} on {threads} threads ({work}), without start and report"


def _hours(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours, with two digits."""
    unit, name = next(((n, name) for n, name in ((3600, "h"), (60, "min")) if seconds >= 2 * n), (1, "s"))
    return f"{seconds / unit:.2g} {name}" if seconds / unit < 100 else f"{seconds / unit:,.0f} {name}"


def size(nbytes: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"


def sizes(dims: Mapping[str, int]) -> str:
    """Return dimensions and their sizes as text."""
    return " x ".join(f"{dim} {n}" for dim, n in dims.items())
