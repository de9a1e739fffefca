"""The commands on files: inputs to Zarr, maps to other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dask_uncert.cli.console import PLACE, progress

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath


def numbers(option: str, text: str | None) -> list[int] | None:
    """Whole numbers with commas, as an option has them."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} takes whole numbers with commas, found {text!r}.") from None


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT.zarr", type=PLACE)
@click.option("--array", default="", help="Name of the array in IN.")
@click.option("--dims", help="Names of its dimensions, with commas, such as y,x,class.")
@click.option("--name", help="Of the new array; by default the old one's, or data.")
@click.option("--chunks", help="Sides of a chunk, with commas.")
@click.option("--shards", help="Sides of a shard, with commas: multiples of a chunk's.")
@click.option("--cluster", default="local", help="local, a file of cluster/, or a tcp:// or tls:// address.")
@click.option("--fresh", is_flag=True, help="Replace what is there.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def convert(
    source: str,
    target: AnyPath,
    array: str,
    dims: str | None,
    name: str | None,
    chunks: str | None,
    shards: str | None,
    cluster: str,
    fresh: bool,
    quiet: bool,
) -> None:
    """Write any readable input IN as a well-chunked Zarr store, verified; goes on where it was stopped."""
    from dask_uncert.jobs.convert import convert as write

    with progress(quiet) as report:
        place = write(
            source,
            target,
            array=array,
            dims=None if dims is None else dims.split(","),
            name=name,
            chunks=numbers("--chunks", chunks),
            shards=numbers("--shards", shards),
            cluster=cluster,
            fresh=fresh,
            report=report,
        )
    if not quiet:
        click.echo(f"{place}")


@click.command()
@click.argument("folder", type=PLACE)
@click.argument("target", metavar="OUT")
@click.option("--map", "name", required=True, help="Name of the map.")
@click.option("--case", help="Of a cohort, whose map.")
@click.option(
    "--slice", "slices", multiple=True, metavar="DIM=INDEX", help="One index along a dimension; repeatable."
)
@click.option("--fresh", is_flag=True, help="Replace what is there.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def export(
    folder: AnyPath,
    target: str,
    name: str,
    case: str | None,
    slices: tuple[str, ...],
    fresh: bool,
    quiet: bool,
) -> None:
    """A map of a finished FOLDER as .tif, .nii, .nii.gz, .nc, .png or .ome.zarr, with its geometry."""
    from dask_uncert.jobs.export import export as write

    at = {}
    for one in slices:
        dim, equals, index = one.partition("=")
        if not equals or not index.isascii() or not index.isdigit():
            raise click.UsageError(f"--slice takes DIM=INDEX, such as z=12, found {one!r}.")
        at[dim] = int(index)
    place = write(folder, name, target, case=case, at=at, fresh=fresh)
    if not quiet:
        click.echo(f"{place}")
