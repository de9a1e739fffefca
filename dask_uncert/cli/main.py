"""The commands. Exit status: 0 for success, 1 for a failure while running, 2 for a wrong request, 130 for Ctrl-C, 143 for SIGTERM."""

from __future__ import annotations

import atexit
import gc
import json
import signal
import sys
import traceback
import warnings
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_uncert.cli import choose, console, files, submit, summary
from dask_uncert.clusters import signals

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath

NUMBERS = console.CommaSeparated(float, "numbers")
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(context_settings=SETTINGS)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="dask-uncert")
def cli(debug: bool) -> None:
    """Evaluate predictions with their uncertainty, at any scale."""


@cli.command("run")
@console.job_argument
@console.cluster_option
@console.out_option
@console.fresh_option
@console.set_option
@console.quiet_option
@console.json_option
@click.option("--performance-report", type=console.FILE, help="Write dask's performance report to this HTML file.")
def run_command(
    job: Path, out: AnyPath | None, overrides: dict[str, Any], quiet: bool, as_json: bool, **options: Any
) -> None:
    """Run a job and write its output folder.

    JOB is a job file. A run that was stopped resumes.
    """
    from dask_uncert.reports.drawing import load_ahead

    load_ahead()
    from dask_uncert.blocks.kernels.cache import NoCacheWarning
    from dask_uncert.errors import InputWarning
    from dask_uncert.jobs.load import read_job
    from dask_uncert.jobs.run import FailedCasesWarning, output_of, run

    folder = output_of(*read_job(job, overrides), out)
    with console.progress(quiet or as_json) as report, warnings.catch_warnings(record=True) as caught:
        for category in (FailedCasesWarning, InputWarning, NoCacheWarning):
            warnings.simplefilter("always", category)
        run(job, out=out, overrides=overrides, progress=report, **options)
    if not quiet or as_json:
        summary.show(folder, as_json)
    for warning in caught:
        if issubclass(warning.category, FailedCasesWarning | InputWarning | NoCacheWarning):
            kind = "error" if issubclass(warning.category, FailedCasesWarning) else "warning"
            click.echo(f"{kind}: {warning.message}", err=True)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if any(issubclass(warning.category, FailedCasesWarning) for warning in caught):
        sys.exit(1)


@cli.command("plan")
@console.job_argument
@console.cluster_option
@console.set_option
@console.json_option
@click.option("--probe/--no-probe", default=True, help="Evaluate a few blocks here to estimate how long the job takes.")
def plan_command(job: Path, as_json: bool, **options: Any) -> None:
    """Show what a job would read and write, and how long it takes.

    No cluster is contacted: block sizes follow the memory in the cluster file, and the time is measured on this machine
    for about a second. If a block cannot fit, the error names chunks that would.
    """
    from dask_uncert.jobs.plan import plan

    facts = plan(job, **options)
    click.echo(json.dumps(facts, indent=1) if as_json else console.plan_text(facts))


@cli.command("merge")
@click.argument("out", type=console.PATH)
@click.argument("folders", type=console.PATH, nargs=-1, required=True)
@click.option("--leave-out", multiple=True, metavar="CASE", help="Leave out a case of a cohort. Repeatable.")
@console.replace_option
@console.json_option
def merge_command(out: AnyPath, folders: tuple[AnyPath, ...], as_json: bool, **options: Any) -> None:
    """Add finished evaluations.

    Writes the sum of the output folders FOLDERS to OUT, without reading a pixel.
    """
    from dask_uncert.jobs.merge import merge

    merge(out, folders, **options)
    summary.show(out, as_json)


@cli.command("report")
@console.folder_argument
@click.option("--against", type=console.PATH, help="Cohort of another model on the same cases to compare with.")
@click.option("--all-figures", is_flag=True, help="Draw every figure as PNG and SVG, not only what the page shows.")
@console.quiet_option
@console.json_option
def report_command(folder: AnyPath, quiet: bool, as_json: bool, **options: Any) -> None:
    """Rewrite tables, figures and page.

    Reads the summaries and maps in the output folder FOLDER, and no input.
    """
    from dask_uncert.reports.drawing import load_ahead

    load_ahead()
    from dask_uncert.jobs.report import report

    with console.progress(quiet or as_json) as progress:
        report(folder, progress=progress, **options)
    if not quiet or as_json:
        summary.show(folder, as_json)


@cli.command("compare")
@click.argument("first", type=console.PATH)
@click.argument("second", type=console.PATH)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="A metric, e.g. 'classes/*/f1'. Repeatable.")
@click.option("--replicates", default=1000, help="Number of bootstrap replicates.")
@click.option("--level", default=0.95, help="Confidence level of the intervals.")
@click.option("--seed", default=0, help="Seed of the random draws.")
@click.option("--permutations", default=2000, help="Swaps of the permutation test.")
@click.option("--common", is_flag=True, help="Compare the cases that both have if the cases differ.")
@console.csv_option
@console.json_option
def compare_command(
    first: AnyPath,
    second: AnyPath,
    metrics: tuple[str, ...],
    csv_file: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare two models on the same cases, or on the same scene.

    FIRST and SECOND are output folders of cohorts, or of a scene with tiles; differences are FIRST minus SECOND. By default it compares the
    metrics that the report shows first. Reads no pixel.
    """
    from dask_uncert.jobs.cohort.compare import compare
    from dask_uncert.reports.tables import comparison

    result = compare(first, second, metrics=metrics or None, **options)
    if csv_file is not None:
        console.write_new(csv_file, comparison.as_csv(result))
    if as_json:
        click.echo(comparison.as_json(result, str(first), str(second)), nl=False)
    elif csv_file is None:
        click.echo(comparison.about(result, str(first), str(second)) + "\n")
        click.echo(comparison.as_table(result, options["level"]))


@cli.command("sweep")
@console.folder_argument
@click.option("--class", "class_name", help="Name of the class; needed if there are several.")
@click.option("--threshold", "thresholds", type=NUMBERS, default="0.5", help="In (0, 1); e.g. 0.3,0.5.")
@click.option("--sigma", "sigmas", type=NUMBERS, default="0", help="Spread of the threshold; e.g. 0,0.1.")
@click.option("--damping", "dampings", type=NUMBERS, default="0", help="0 or more; e.g. 0,1.")
@click.option("--uncertainty", help="Name of the measure that damps; needed if there are several.")
@click.option("--distribution", default="gaussian", help="Distribution of the threshold, e.g. logistic.")
@click.option("--df", type=float, help="Degrees of freedom of student-t.")
@click.option("--damping-form", default="exponential", help="Form of damping: exponential, reciprocal or gaussian.")
@click.option("--reference-threshold", type=float, help="Threshold of the reference; default: the threshold.")
@click.option("--reference-certainty", default="paper", help="Certainty of the reference: paper or none.")
@console.csv_option
@console.json_option
def sweep_command(
    folder: AnyPath, class_name: str | None, csv_file: Path | None, as_json: bool, **options: Any
) -> None:
    """Compute soft confusion at other settings.

    Every number comes with its error bound. Reads the joint histogram in the output folder FOLDER, and no pixel.
    """
    from dask_uncert.io.summary_store import load
    from dask_uncert.metrics.sweep import sweep
    from dask_uncert.reports.tables import sweep as tables
    from dask_uncert.summaries.evaluation import Evaluation

    evaluation = load(folder)
    if not isinstance(evaluation, Evaluation):
        raise click.UsageError(f"{folder} is not a classification, so it has no soft confusion.")
    result = sweep(evaluation, class_name, **options)
    if csv_file is not None:
        console.write_new(csv_file, tables.as_csv(result))
    if as_json:
        click.echo(tables.as_json(result), nl=False)
    elif csv_file is None:
        click.echo(tables.as_table(result))
    if note := tables.warning(result):
        click.echo(f"note: {note}", err=True)


@cli.command("schema")
@click.argument("key", required=False)
@console.json_option
def schema_command(key: str | None, as_json: bool) -> None:
    """Explain a job key, or print the JSON Schema of job files.

    KEY is a key such as `ignore`, or a path such as `confidence.size`. Without it, the schema is printed.
    """
    from dask_uncert.jobs.schema import job_schema

    text = job_schema(key)
    if as_json and key is not None:
        text = json.dumps({"key": key, "explanation": text.splitlines()}, ensure_ascii=False) + "\n"
    click.echo(text, nl=False)


for command in (*choose.COMMANDS, *files.COMMANDS, *submit.COMMANDS):
    cli.add_command(command)


def main() -> None:
    """Run a command; print an error as one paragraph on stderr."""
    _collect_seldom()
    from dask_uncert.errors import ClusterError, InputError, OutputError, exception_text, without_secrets

    advice = console.resume_advice(sys.argv[1:])
    try:
        with signals.ending_soon(advice=advice):
            cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show(shown := StringIO())
        click.echo(without_secrets(shown.getvalue()), err=True, nl=False)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort) as error:
        number = signals.signal_number(error)
        if not number:
            click.echo(advice, err=True)
        sys.exit(128 + (number or signal.SIGINT))
    except Exception as error:
        if "--debug" in sys.argv:
            click.echo(without_secrets(traceback.format_exc()), err=True)
        if isinstance(error, InputError | ClusterError | OutputError):
            click.echo(f"error: {error}", err=True)
            sys.exit(1 if isinstance(error, OutputError) else 2)
        click.echo(f"error: {exception_text(error, None)} (`dask-uncert --debug ...` shows where)", err=True)
        sys.exit(1)


def _collect_seldom() -> None:
    """Look for garbage less often, and not when the process ends: that took a sixth of the time of a small job.

    Importing makes hundreds of thousands of objects that live until the end.
    """
    gc.set_threshold(50_000, 20, 50)
    atexit.register(gc.freeze)
