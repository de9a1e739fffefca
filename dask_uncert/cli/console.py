"""What commands print: progress while they work, the few numbers that matter at their end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dask_uncert.io.output_folder import Report
    from dask_uncert.io.paths import AnyPath


class PlaceType(click.ParamType):  # type: ignore[type-arg]
    """A path or a URL."""

    name = "path"

    def convert(self, value: Any, param: Any, ctx: Any) -> AnyPath:
        """The place; InputError for a URL whose library is not installed."""
        from dask_uncert.io.paths import as_path

        return as_path(value)


PLACE = PlaceType()


@contextmanager
def progress(silent: bool) -> Iterator[Report | None]:
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
                click.echo(f"{what}: {done} of {total}", err=True)

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


def headline(evaluation: Any, place: AnyPath) -> None:
    """Print what most people want to know of a finished evaluation, and where the rest is."""
    from dask_uncert.metrics import calibration as calibration_metrics
    from dask_uncert.metrics import classification
    from dask_uncert.summaries import regression

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
            f"Accuracy {classification.accuracy(evaluation):.4f}, kappa {classification.kappa(evaluation):.4f}, "
            f"ECE {calibration_metrics.expected_calibration_error(evaluation):.4f}."
        )
    click.echo(f"{int(evaluation.ledger.counted):,} pixels counted, {left_out:,} left out. {numbers}")
    click.echo(f"Results: {place}, page: {place / 'report.html'}")


def forecast(facts: Mapping[str, Any]) -> str:
    """What a plan says, a line each."""
    read = ", ".join(f"{name} {size(nbytes)}" for name, nbytes in facts["bytes_read"].items())
    total = size(sum(facts["bytes_read"].values()))
    if "cases" in facts:
        large = f", {facts['large_cases']} large and cut into blocks" if facts["large_cases"] else ""
        lines = [("cases", f"{facts['cases']} of {facts['patients']} patients{large}")]
    else:
        blocks = f"{facts['blocks']} of {sizes(facts['block'])}"
        lines = [("grid", sizes(facts["grid"])), ("blocks", blocks)]
    lines += [
        ("tasks", facts["tasks"]),
        ("reads", f"{total} decoded: {read}"),
        ("memory", f"at most {size(facts['block_memory_bytes'])} a thread, beside Python's own"),
        ("maps", ", ".join(facts["maps"]) or "none"),
        ("writes", facts["output"]),
    ]
    lines += [("unusable", f"{name}: {why}") for name, why in facts.get("unusable", {}).items()]
    return "\n".join(f"{what:>8}  {value}" for what, value in lines)


def size(number: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def sizes(of: dict[str, int]) -> str:
    """Dimensions and their sizes for people."""
    return " x ".join(f"{d} {n}" for d, n in of.items())


def changes(sets: tuple[str, ...]) -> dict[str, Any]:
    """The words and values of `--set KEY=VALUE`."""
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
