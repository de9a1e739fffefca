"""Shared parts of commands: types of options, the options themselves, progress, and the printed results."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dask_uncert.io.output_folder import Progress
    from dask_uncert.io.paths import AnyPath

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


def resume_advice(words: Sequence[str]) -> str:
    """Return what a command that was stopped says: the command to type to go on.

    >>> resume_advice(["run", "my job.yaml", "--fresh"])
    "stopped. What is finished is kept. To go on, type: dask-uncert run 'my job.yaml'"
    """
    from dask_uncert.errors import without_secrets

    again = shlex.join(["dask-uncert", *(word for word in words if word != "--fresh")])
    kept = "What is finished is kept. To go on" if {"run", "convert"} & {*words[:2]} else "To start again"
    return without_secrets(f"stopped. {kept}, type: {again}")


@contextmanager
def progress(silent: bool) -> Iterator[Progress | None]:
    """Show the progress of each stage, its rate and the time left: as bars on a terminal, or else as lines."""
    if silent:
        yield None
        return
    if not sys.stderr.isatty():
        quarters: dict[str, int] = {}
        began: dict[str, tuple[float, int]] = {}

        def line(stage: str, done: int, total: int) -> None:
            quarter = 4 * done // max(total, 1)
            now = time.monotonic()
            since, first = began.setdefault(stage, (now, done))
            if quarter > quarters.get(stage, -1):
                quarters[stage] = quarter
                click.echo(f"{stage}: {done} of {total}{pace(done - first, total - done, now - since)}", err=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBar

    rate = TextColumn("{task.fields[rate]}")
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, *times)
    with ProgressBar(*columns, console=Console(stderr=True)) as bar:
        bars: dict[str, Any] = {}

        def draw(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = bar.add_task(stage, total=total, rate="")
            speed = next(task.speed for task in bar.tasks if task.id == bars[stage])
            bar.update(bars[stage], completed=done, total=total, rate=f"{speed:.3g}/s" if speed else "")

        yield draw


def pace(done: int, left: int, seconds: float) -> str:
    """Return the rate of a stage and the time that is left; nothing where no time can be told.

    >>> pace(0, 10, 2.0), pace(4, 12, 2.0)
    ('', ', 2/s, 6 s left')
    """
    if done <= 0 or seconds <= 0:
        return ""
    rate = done / seconds
    return f", {rate:.3g}/s" + (f", {duration(left / rate)} left" if left else f", in {duration(seconds)}")


def duration(seconds: float) -> str:
    """Return a time as a person says it.

    >>> duration(8.4), duration(75), duration(7300)
    ('8 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def show_output(path: object, quiet: bool, as_json: bool) -> None:
    """Print the path of what was written."""
    if as_json:
        click.echo(json.dumps({"output": str(path)}))
    elif not quiet:
        click.echo(path)


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
    if without := plan["without_checksum"]:
        lines.append(("checksum", f"none in the chunks of {', '.join(without)}: damage to them may pass unnoticed"))
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
