"""The commands on submitted jobs: submit, status, wait, cancel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_uncert.cli import console

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath

EPILOG = "ID is the job's output folder, as `submit` printed it."
id_argument = click.argument("output", metavar="ID", type=console.PATH)


@click.command("submit")
@console.job_argument
@click.option("--cluster", help=f"{console.RUNNING.capitalize()}; overrides the job's cluster.")
@console.out_option
@console.fresh_option
@console.set_option
def submit_command(job: Path, **options: Any) -> None:
    """Submit a job to a running cluster or SLURM.

    Prints the job's id and returns at once.
    """
    from dask_uncert.jobs.submit import submit

    click.echo(submit(job, **options).output)


@click.command("status", epilog=EPILOG)
@id_argument
def status_command(output: AnyPath) -> None:
    """Show the status of a submitted job."""
    from dask_uncert.jobs.submit import status

    click.echo(status(output))


@click.command("wait", epilog=EPILOG)
@id_argument
@click.option("--timeout", type=float, help="Seconds to wait at most.")
def wait_command(output: AnyPath, timeout: float | None) -> None:
    """Wait until a submitted job has ended.

    Exit status 0 if it succeeded.
    """
    from dask_uncert.jobs.submit import wait

    job = wait(output, timeout)
    click.echo(job, err=job.status != "done")
    sys.exit(0 if job.status == "done" else 1)


@click.command("cancel", epilog=EPILOG)
@id_argument
def cancel_command(output: AnyPath) -> None:
    """Cancel a submitted job.

    What it has finished is kept; submit it again to resume.
    """
    from dask_uncert.jobs.submission import ENDED
    from dask_uncert.jobs.submit import cancel

    job = cancel(output)
    click.echo(job)
    sys.exit(0 if job.status in ENDED else 1)


COMMANDS = (submit_command, status_command, wait_command, cancel_command)
