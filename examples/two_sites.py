"""Two sites that share only Summaries: counts travel, pixels stay. The sum is the evaluation of all pixels."""

import tempfile
from pathlib import Path

import xarray as xr

import dask_uncert as du

SCENE = Path(__file__).parent / "data" / "indian_pines.zarr"


def evaluate(part: xr.Dataset) -> du.Evaluation:
    """Return what a site counts on its own pixels; both use the same options."""
    classes = {int(code): name for code, name in part.labels.attrs["classes"].items()}
    return du.evaluate(part.random_forest, part.labels, mask=part.held_out, classes=classes, ignore=0)


with tempfile.TemporaryDirectory() as shared:
    scene = xr.open_zarr(SCENE, consolidated=False)
    for name, rows in {"north": slice(None, 70), "south": slice(70, None)}.items():  # each at its own site
        du.save(evaluate(scene.isel(y=rows)), f"{shared}/{name}.zarr")

    north, south = (du.load(f"{shared}/{name}.zarr") for name in ("north", "south"))  # at either site
    size = sum(path.stat().st_size for path in Path(shared).rglob("*") if path.is_file())

print(f"north {du.accuracy(north):.4f}, south {du.accuracy(south):.4f}, together {du.accuracy(north + south):.4f}")
print(f"shared: {size / 2**20:.1f} MiB; the same bits as in one pass: {north + south == evaluate(scene)}")
