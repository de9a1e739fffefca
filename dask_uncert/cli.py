"""The commands. Exit status: 0 all good, 1 something failed while running, 2 the request was wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dask_uncert.runs import Report

FOLDER = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="dask-uncert")
def cli(debug: bool) -> None:
    """Evaluate predictions with their uncertainty, at any scale."""


@cli.command()
@click.argument("job", type=FOLDER)
@click.option(
    "--cluster", help="local, a file of cluster/, or a tcp:// or tls:// address; instead of the job's."
)
@click.option("--out", type=FOLDER, help="Output folder, instead of the job's.")
@click.option("--fresh", is_flag=True, help="Run even if the same evaluation is finished; replace another's.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A word of the job, dotted; repeatable."
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def run(
    job: Path,
    cluster: str | None,
    out: Path | None,
    fresh: bool,
    sets: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the job file JOB and write its output folder."""
    from dask_uncert import runs
    from dask_uncert.jobs import read_job, resolve

    changes = _sets(sets)
    words, folder = read_job(job, changes)
    place = out or Path(resolve(words.output, folder))
    with _progress(quiet or as_json) as report:
        evaluation = runs.run(job, cluster=cluster, out=out, fresh=fresh, sets=changes, report=report)
    if as_json:
        click.echo((place / "results.json").read_text(encoding="utf-8"), nl=False)
    elif not quiet:
        _headline(evaluation, place)


@cli.command()
@click.argument("job", type=FOLDER)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A word of the job, dotted; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(job: Path, sets: tuple[str, ...], as_json: bool) -> None:
    """Say what the job file JOB would read and write, in how many tasks; run nothing."""
    from dask_uncert.jobs import plan_job, read_job, resolve

    words, folder = read_job(job, _sets(sets))
    made = plan_job(words, folder)
    facts: dict[str, Any] = {
        "grid": dict(zip(made.grid.dims, made.grid.shape, strict=True)),
        "block": dict(zip(made.grid.dims, made.grid.block, strict=True)),
        "blocks": made.grid.blocks,
        "tasks": made.tasks(),
        "bytes_read": made.nbytes(),
        "block_memory_bytes": made.block_memory(),
        "maps": list(made.request.layers),
        "output": resolve(words.output, folder),
    }
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    read = ", ".join(f"{name} {_size(size)}" for name, size in facts["bytes_read"].items())
    for what, value in (
        ("grid", _sizes(facts["grid"])),
        ("blocks", f"{facts['blocks']} of {_sizes(facts['block'])}"),
        ("tasks", facts["tasks"]),
        ("reads", f"{_size(sum(facts['bytes_read'].values()))} decoded: {read}"),
        ("memory", f"at most {_size(facts['block_memory_bytes'])} a thread, beside Python's own"),
        ("maps", ", ".join(facts["maps"]) or "none"),
        ("writes", facts["output"]),
    ):
        click.echo(f"{what:>8}  {value}")


@cli.command()
@click.argument("out", type=FOLDER)
@click.argument("folders", type=FOLDER, nargs=-1, required=True)
@click.option("--fresh", is_flag=True, help="Replace a finished evaluation in OUT.")
def merge(out: Path, folders: tuple[Path, ...], fresh: bool) -> None:
    """Add the finished evaluations in FOLDERS into OUT without reading a pixel."""
    from dask_uncert import runs

    _headline(runs.merge(out, folders, fresh=fresh), out)


@cli.command()
@click.argument("folder", type=FOLDER)
def report(folder: Path) -> None:
    """Write the tables, figures and page of a finished FOLDER again, from its Summaries."""
    from dask_uncert import runs

    _headline(runs.rewrite_report(folder), folder)


@cli.command()
def schema() -> None:
    """Print the job file's JSON Schema, for editors."""
    from dask_uncert.jobs import schema as text

    click.echo(text(), nl=False)


def _sets(sets: tuple[str, ...]) -> dict[str, Any]:
    import yaml

    found = {}
    for one in sets:
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--set takes KEY=VALUE, found {one!r}.")
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise click.UsageError(f"--set {key}: {value!r} is no valid YAML.") from None
    return found


@contextmanager
def _progress(silent: bool) -> Iterator[Report | None]:
    """A progress bar on a terminal, a plain line each quarter elsewhere."""
    if silent:
        yield None
        return
    if not sys.stderr.isatty():
        said: dict[str, int] = {}

        def line(what: str, done: int, total: int) -> None:
            quarter = 4 * done // max(total, 1)
            if quarter > said.get(what, -1):
                said[what] = quarter
                click.echo(f"{what}: {done} of {total} blocks", err=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        bars: dict[str, Any] = {}

        def draw(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = bar.add_task(what, total=total)
            bar.update(bars[what], completed=done)

        yield draw


def _headline(evaluation: Any, place: Path) -> None:
    from dask_uncert.summaries import calibration_readings, readings, regression

    left_out = int(evaluation.ledger.excluded.sum())
    if isinstance(evaluation, regression.RegressionEvaluation):
        side = regression.regression_side(evaluation)
        numbers = (
            f"Area under the calibration curve {regression.regression_area(evaluation):.4f}"
            f"{f' ({side})' if side else ''}, "
            f"squared distance to the diagonal {regression.regression_distance(evaluation):.3g}."
        )
    else:
        numbers = (
            f"Accuracy {readings.accuracy(evaluation):.4f}, kappa {readings.kappa(evaluation):.4f}, "
            f"ECE {calibration_readings.expected_calibration_error(evaluation):.4f}."
        )
    click.echo(f"{int(evaluation.ledger.counted):,} pixels counted, {left_out:,} left out. {numbers}")
    click.echo(f"Results: {place}, page: {place / 'report.html'}")


def _size(number: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def _sizes(sizes: dict[str, int]) -> str:
    return " x ".join(f"{d} {n}" for d, n in sizes.items())


def main() -> None:
    """The console script: commands, with every error said in one paragraph on stderr."""
    from dask_uncert.errors import InputError

    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped; run the same command again to go on.", err=True)
        sys.exit(1)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        from dask_uncert.clusters import ClusterError

        if isinstance(error, InputError | ClusterError):
            click.echo(f"error: {error}", err=True)
            sys.exit(2)
        text = " ".join(str(error).split()) or "no message"
        click.echo(f"error: {type(error).__name__}: {text} (`dask-uncert --debug ...` shows where)", err=True)
        sys.exit(1)
