"""The commands on files: inputs to Zarr, maps to other formats."""

from __future__ import annotations

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
def convert_command(source: str, target: AnyPath, quiet: bool, **options: Any) -> None:
    """Copy an input to a well-chunked Zarr store.

    IN may have any readable format. The copy is verified. A conversion that was stopped resumes.
    """
    from dask_uncert.jobs.convert import convert

    with console.progress(quiet) as report:
        path = convert(source, target, progress=report, **options)
    if not quiet:
        click.echo(path)


@click.command("export")
@console.folder_argument
@click.argument("target", metavar="OUT")
@click.option("--map", "name", required=True, help="Name of the map.")
@click.option("--case", help="Name of the case, for a cohort.")
@console.key_values("--slice", "at", int, "DIM=INDEX", "Take one index along a dimension, e.g. z=12. Repeatable.")
@console.replace_option
@console.quiet_option
def export_command(folder: AnyPath, name: str, target: str, quiet: bool, **options: Any) -> None:
    """Export a map to another format.

    The format follows the ending of OUT: .tif, .nii, .nii.gz, .nc, .png or .ome.zarr. Georeferencing is kept.
    """
    from dask_uncert.jobs.export import export

    path = export(folder, name, target, **options)
    if not quiet:
        click.echo(path)


COMMANDS = (convert_command, export_command)
