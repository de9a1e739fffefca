"""The commands on submitted jobs: submit, status, wait, cancel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_uncert.cli import console

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath
    from dask_uncert.jobs.submission import JobStatus

EPILOG = "ID is the job's output folder, as `submit` printed it."
id_argument = click.argument("output", metavar="ID", type=console.PATH)


@click.command("submit")
@console.job_argument
@click.option("--cluster", help=f"{console.RUNNING.capitalize()}; overrides the job's cluster.")
@console.out_option
@console.fresh_option
@console.set_option
@console.json_option
def submit_command(job: Path, as_json: bool, **options: Any) -> None:
    """Submit a job to a running cluster or SLURM.

    Prints the job's id and returns at once.
    """
    from dask_uncert.jobs.submit import submit

    console.show_output(submit(job, **options).output, False, as_json)


@click.command("status", epilog=EPILOG)
@click.argument("output", metavar="[ID]", type=console.PATH, required=False)
@console.json_option
def status_command(output: AnyPath | None, as_json: bool) -> None:
    """Show the status of a submitted job, or of all.

    Without an ID, lists the jobs that you submitted from this machine.
    """
    from dask_uncert.jobs.submit import status, submissions

    if output is not None:
        _show(output, status(output), as_json)
        return
    jobs = submissions()
    if as_json:
        click.echo(json.dumps([_record(output, job) for output, job in jobs.items()], indent=1))
        return
    for name, job in jobs.items():
        click.echo(f"{name}  {job}")
    if not jobs:
        click.echo("no job was submitted from this machine: `dask-uncert submit JOB --cluster ...` submits one.")


@click.command("wait", epilog=EPILOG)
@id_argument
@click.option("--timeout", type=float, help="Seconds to wait at most.")
@console.json_option
def wait_command(output: AnyPath, timeout: float | None, as_json: bool) -> None:
    """Wait until a submitted job has ended.

    Exit status 0 if it succeeded.
    """
    from dask_uncert.jobs.submit import wait

    job = wait(output, timeout)
    _show(output, job, as_json, err=job.status != "done")
    sys.exit(0 if job.status == "done" else 1)


@click.command("cancel", epilog=EPILOG)
@id_argument
@console.json_option
def cancel_command(output: AnyPath, as_json: bool) -> None:
    """Cancel a submitted job.

    What it has finished is kept; submit it again to resume.
    """
    from dask_uncert.jobs.submission import ENDED
    from dask_uncert.jobs.submit import cancel

    job = cancel(output)
    _show(output, job, as_json)
    sys.exit(0 if job.status in ENDED else 1)


def _show(output: AnyPath, job: JobStatus, as_json: bool, err: bool = False) -> None:
    if as_json:
        click.echo(json.dumps(_record(str(output), job)))
    else:
        click.echo(job, err=err)


def _record(output: str, job: JobStatus) -> dict[str, str]:
    return {"output": output, "status": job.status, "message": job.message}


COMMANDS = (submit_command, status_command, wait_command, cancel_command)
