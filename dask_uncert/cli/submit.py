"""The commands on jobs that were sent off: submit, status, wait, cancel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dask_uncert.cli.console import PLACE, changes

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath

FILE = click.Path(path_type=Path)
OUTPUT = "The job is named by its output folder, as `submit` printed it."


@click.command()
@click.argument("job", type=FILE)
@click.option("--cluster", help="A file of cluster/, or a tcp:// or tls:// address; instead of the job's.")
@click.option("--out", type=PLACE, help="Output folder, instead of the job's.")
@click.option("--fresh", is_flag=True, help="Run even if the same evaluation is finished; replace another's.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A word of the job, dotted; repeatable."
)
def submit(job: Path, cluster: str | None, out: AnyPath | None, fresh: bool, sets: tuple[str, ...]) -> None:
    """Start the job file JOB on a running cluster or SLURM, and detach; prints its id."""
    from dask_uncert.jobs import submit as submit_job

    click.echo(submit_job.submit(job, cluster, out, fresh, changes(sets)).output)


@click.command(epilog=OUTPUT)
@click.argument("job", metavar="ID", type=PLACE)
def status(job: AnyPath) -> None:
    """Say how a submitted job fares."""
    from dask_uncert.jobs import submit as submit_job

    found = submit_job.status(job)
    click.echo(f"{found.status}: {found.said}")


@click.command(epilog=OUTPUT)
@click.argument("job", metavar="ID", type=PLACE)
@click.option("--timeout", type=float, help="Seconds to wait at most.")
def wait(job: AnyPath, timeout: float | None) -> None:
    """Wait until a submitted job has ended; exit status 0 if it is done."""
    from dask_uncert.jobs import submit as submit_job

    found = submit_job.wait(job, timeout)
    click.echo(f"{found.status}: {found.said}", err=found.status != "done")
    sys.exit(0 if found.status == "done" else 1)


@click.command(epilog=OUTPUT)
@click.argument("job", metavar="ID", type=PLACE)
def cancel(job: AnyPath) -> None:
    """End a submitted job; what it has finished is kept for another submission."""
    from dask_uncert.jobs import submit as submit_job

    found = submit_job.cancel(job)
    click.echo(f"{found.status}: {found.said}")
    sys.exit(0 if found.status in ("cancelled", "done", "failed") else 1)
