"""The commands. Exit status: 0 all good, 1 something failed while running, 2 the request was wrong."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_uncert.cli import files, submit
from dask_uncert.cli.console import PLACE, changes, forecast, headline, progress

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath

FILE = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="dask-uncert")
def cli(debug: bool) -> None:
    """Evaluate predictions with their uncertainty, at any scale."""


@cli.command()
@click.argument("job", type=FILE)
@click.option(
    "--cluster", help="local, a file of cluster/, or a tcp:// or tls:// address; instead of the job's."
)
@click.option("--out", type=PLACE, help="Output folder, instead of the job's.")
@click.option("--fresh", is_flag=True, help="Run even if the same evaluation is finished; replace another's.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A word of the job, dotted; repeatable."
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--performance-report", "page", type=FILE, help="A file for dask's page about the pass.")
def run(
    job: Path,
    cluster: str | None,
    out: AnyPath | None,
    fresh: bool,
    sets: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    page: Path | None,
) -> None:
    """Run the job file JOB and write its output folder."""
    from dask_uncert.io.paths import as_path
    from dask_uncert.jobs import run as run_job
    from dask_uncert.jobs.load import read_job, resolve

    asked = changes(sets)
    words, folder = read_job(job, asked)
    place = out or as_path(resolve(words.output, folder))
    with progress(quiet or as_json) as report, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", run_job.FailedCasesWarning)
        warnings.simplefilter("always", run_job.InputWarning)
        evaluation = run_job.run(
            job, cluster=cluster, out=out, fresh=fresh, sets=asked, report=report, performance_report=page
        )
    if as_json:
        click.echo((place / "results.json").read_text(encoding="utf-8"), nl=False)
    elif not quiet:
        headline(evaluation, place)
    for one in sorted(said, key=lambda one: issubclass(one.category, run_job.FailedCasesWarning)):
        if issubclass(one.category, run_job.FailedCasesWarning):
            click.echo(f"error: {one.message}", err=True)
            sys.exit(1)
        if issubclass(one.category, run_job.InputWarning):
            click.echo(f"warning: {one.message}", err=True)
            continue
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@cli.command()
@click.argument("job", type=FILE)
@click.option(
    "--cluster", help="local, a file of cluster/, or a tcp:// or tls:// address; instead of the job's."
)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A word of the job, dotted; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(job: Path, cluster: str | None, sets: tuple[str, ...], as_json: bool) -> None:
    """Say what the job file JOB would read and write, in how many tasks; run nothing, connect to nothing.

    What the cluster's file says of its memory decides the blocks; an error says in which chunks inputs would fit.
    """
    from dask_uncert.clusters.memory import described_memory
    from dask_uncert.execution.memory import fit_to_memory
    from dask_uncert.jobs.cohort import plan as plan_cohort
    from dask_uncert.jobs.cohort_schema import CohortJob
    from dask_uncert.jobs.load import cluster_of, plan_job, read_job, resolve

    words, folder = read_job(job, changes(sets))
    room = described_memory(cluster or cluster_of(words, folder), isinstance(words, CohortJob))
    facts: dict[str, Any]
    if isinstance(words, CohortJob):
        facts = plan_cohort.forecast(plan_cohort.asked(words, folder), room)
    else:
        made = fit_to_memory(plan_job(words, folder), room)
        facts = {
            "grid": dict(zip(made.grid.dims, made.grid.shape, strict=True)),
            "block": dict(zip(made.grid.dims, made.grid.block, strict=True)),
            "blocks": made.grid.blocks,
            "tasks": made.tasks(),
            "bytes_read": made.nbytes(),
            "block_memory_bytes": made.block_memory(),
            "maps": list(made.request.layers),
        }
    facts["output"] = resolve(words.output, folder)
    click.echo(json.dumps(facts, indent=1) if as_json else forecast(facts))


@cli.command()
@click.argument("out", type=PLACE)
@click.argument("folders", type=PLACE, nargs=-1, required=True)
@click.option("--leave-out", multiple=True, metavar="CASE", help="A case of a cohort; repeatable.")
@click.option("--fresh", is_flag=True, help="Replace a finished evaluation in OUT.")
def merge(out: AnyPath, folders: tuple[AnyPath, ...], leave_out: tuple[str, ...], fresh: bool) -> None:
    """Add the finished evaluations in FOLDERS into OUT without reading a pixel."""
    from dask_uncert.jobs import merge as merge_job

    headline(merge_job.merge(out, folders, fresh=fresh, leave_out=leave_out), out)


@cli.command()
@click.argument("folder", type=PLACE)
@click.option("--against", type=PLACE, help="Of a cohort: another model on the same cases, to compare with.")
def report(folder: AnyPath, against: AnyPath | None) -> None:
    """Write the tables, figures and page of a finished FOLDER again, from its Summaries."""
    from dask_uncert.jobs import merge as merge_job

    headline(merge_job.rewrite_report(folder, against), folder)


@cli.command()
@click.argument("first", type=PLACE)
@click.argument("second", type=PLACE)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="A number by name or pattern, such as "
    "'classes/*/f1', or '*'; repeatable. By default those that the report shows first."
)  # fmt: skip
@click.option("--replicates", default=1000, show_default=True, help="How often patients are drawn.")
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same patients.")
@click.option("--permutations", default=2000, show_default=True, help="Swaps of the models, if not all.")
@click.option("--common", is_flag=True, help="Compare the cases that both have, where they differ.")
@click.option("--csv", "csv_file", type=FILE, help="Write every digit to this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print every digit as JSON.")
def compare(
    first: AnyPath,
    second: AnyPath,
    metrics: tuple[str, ...],
    csv_file: Path | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Compare two models on the same cases, FIRST less SECOND: finished folders of cohorts. Reads no pixel."""
    from dask_uncert.jobs.cohort.compare import compare as models
    from dask_uncert.reports.tables import comparison

    if csv_file is not None and csv_file.exists():
        raise click.UsageError(f"{csv_file} exists; name another file.")
    found = models(first, second, metrics=metrics or None, **words)
    if csv_file is not None:
        csv_file.write_text(comparison.as_csv(found), encoding="utf-8", newline="")
    if as_json:
        click.echo(comparison.as_json(found, str(first), str(second)), nl=False)
    elif csv_file is None:
        click.echo(comparison.about(found, str(first), str(second)) + "\n")
        click.echo(comparison.as_table(found, words["level"]))


@cli.command()
@click.argument("folder", type=PLACE)
@click.option("--class", "class_name", help="The class; may be left out where there is one only.")
@click.option("--threshold", "thresholds", default="0.5", help="In (0, 1); several with commas.")
@click.option("--sigma", "sigmas", default="0", help="Spread of the threshold; several with commas.")
@click.option("--damping", "dampings", default="0", help="0 or above; several with commas.")
@click.option("--uncertainty", help="The measure that damps; may be left out where there is one only.")
@click.option("--distribution", default="gaussian", help="Of the threshold, such as logistic or laplace.")
@click.option("--df", type=float, help="Degrees of freedom of student-t.")
@click.option("--damping-form", default="exponential", help="exponential, reciprocal or gaussian.")
@click.option("--reference-threshold", type=float, help="By default the threshold.")
@click.option("--reference-certainty", default="paper", help="paper or none.")
@click.option("--csv", "csv_file", type=FILE, help="Write every digit to this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print every digit as JSON.")
def sweep(
    folder: AnyPath,
    class_name: str | None,
    thresholds: str,
    sigmas: str,
    dampings: str,
    csv_file: Path | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Any soft confusion of a class in a finished FOLDER, with bounds, without reading a pixel."""
    from dask_uncert.io.saving import load
    from dask_uncert.metrics.sweep import sweep as read_sweep
    from dask_uncert.reports.tables import sweep as sweep_table
    from dask_uncert.summaries.evaluation import Evaluation

    if csv_file is not None and csv_file.exists():
        raise click.UsageError(f"{csv_file} exists; name another file.")
    evaluation = load(folder)
    if not isinstance(evaluation, Evaluation):
        raise click.UsageError(f"{folder} holds no evaluation of classes, so there is nothing to sweep.")
    grid: dict[str, Any] = {
        word: _numbers(f"--{word[:-1]}", text)
        for word, text in (("thresholds", thresholds), ("sigmas", sigmas), ("dampings", dampings))
    }
    found = read_sweep(evaluation, class_name, **grid, **words)
    if csv_file is not None:
        csv_file.write_text(sweep_table.as_csv(found), encoding="utf-8")
    if as_json:
        click.echo(sweep_table.as_json(found), nl=False)
    elif csv_file is None:
        click.echo(sweep_table.as_table(found))
    if said := sweep_table.warning(found):
        click.echo(f"note: {said}", err=True)


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} takes numbers with commas, found {text!r}.") from None


cli.add_command(files.convert)
cli.add_command(files.export)
for _one in (submit.submit, submit.status, submit.wait, submit.cancel):
    cli.add_command(_one)


@cli.command()
def schema() -> None:
    """Print the job file's JSON Schema, for editors."""
    from dask_uncert.jobs.load import schema as text

    click.echo(text(), nl=False)


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
        from dask_uncert.errors import ClusterError, OutputError

        if isinstance(error, InputError | ClusterError | OutputError):
            click.echo(f"error: {error}", err=True)
            sys.exit(1 if isinstance(error, OutputError) else 2)
        text = " ".join(str(error).split()) or "no message"
        click.echo(f"error: {type(error).__name__}: {text} (`dask-uncert --debug ...` shows where)", err=True)
        sys.exit(1)
