"""The commands on files: a demo, a first job, inputs to Zarr, maps to other formats."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dask_uncert.cli import console

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath

NAMES, SIDES = console.CommaSeparated(str, "names"), console.CommaSeparated(int, "integers")


@click.command("convert")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT.zarr", type=console.PATH)
@click.option("--array", default="", show_default=False, help="Name of the array in IN.")
@click.option("--dims", type=NAMES, help="Names of its dimensions, e.g. y,x,class.")
@click.option("--name", help="Name of the new array; by default the old name, or data.")
@click.option("--chunks", type=SIDES, help="Sides of a chunk, e.g. 256,256,16.")
@click.option("--shards", type=SIDES, help="Sides of a shard, multiples of a chunk's.")
@click.option("--cluster", default="local", help=f"{console.CLUSTER}.")
@console.replace_option
@console.quiet_option
@console.json_option
def convert_command(source: str, target: AnyPath, quiet: bool, as_json: bool, **options: Any) -> None:
    """Copy an input to a well-chunked Zarr store.

    IN may have any readable format. The copy is verified. A conversion that was stopped resumes.
    """
    from dask_uncert.jobs.convert import convert

    with console.progress(quiet or as_json) as report:
        path = convert(source, target, progress=report, **options)
    console.show_output(path, quiet, as_json)


@click.command("export")
@console.folder_argument
@click.argument("target", metavar="OUT")
@click.option("--map", "name", required=True, help="Name of the map.")
@click.option("--case", help="Name of the case, for a cohort.")
@console.key_values("--slice", "at", int, "DIM=INDEX", "Take one index along a dimension, e.g. z=12. Repeatable.")
@console.replace_option
@console.quiet_option
@console.json_option
def export_command(folder: AnyPath, name: str, target: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """Export a map to another format.

    The format follows the ending of OUT: .tif, .nii, .nii.gz, .nc, .png or .ome.zarr. Georeferencing is kept.
    """
    from dask_uncert.jobs.export import export

    path = export(folder, name, target, **options)
    console.show_output(path, quiet, as_json)


@click.command("demo")
@click.argument("folder", metavar="[DIR]", type=console.FILE, default=Path("dask_uncert_demo"))
@click.option("--seed", default=0, help="Another seed makes another scene.")
@console.json_option
def demo_command(folder: Path, seed: int, as_json: bool) -> None:
    """Write a small scene with a job to try.

    DIR is a new folder, by default dask_uncert_demo.
    """
    from dask_uncert.jobs.demo import demo

    job = demo(folder, seed=seed)
    if as_json:
        click.echo(json.dumps({"job": str(job), "data": str(job.parent / "scene.zarr")}))
        return
    click.echo(f"Wrote {job} and {job.parent / 'scene.zarr'}. Next:\n")
    click.echo(f"  cd {shlex.quote(str(job.parent))} && dask-uncert run {job.name}")
    click.echo("  open results/report.html in a browser, or read its numbers: cat results/results.json")


@click.command("init")
@click.argument("files", type=console.FILE, nargs=-1, required=True)
@click.option("--out", type=console.FILE, default=Path("job.yaml"), help="The job file to write.")
@console.json_option
def init_command(files: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Look at your files and write a job for them.

    FILES are those of a scene (predictions, reference, others), or for a cohort one folder for each input, with one
    file a case. Each guess is marked in the job. Nothing is overwritten.
    """
    from dask_uncert.jobs.init import guesses, init

    job = init(*files, out=out)
    if as_json:
        click.echo(json.dumps({"job": str(job), "guesses": guesses(job)}, ensure_ascii=False))
        return
    click.echo(f"Wrote {job}. Check each guess in it:\n")
    for line in guesses(job):
        click.echo(f"  {' '.join(line.split())}")
    click.echo(f"\nNext:\n\n  dask-uncert plan {shlex.quote(str(job))}\n  dask-uncert run {shlex.quote(str(job))}")


COMMANDS = (demo_command, init_command, convert_command, export_command)
