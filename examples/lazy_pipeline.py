"""A lazy pipeline: from features to the page, with xarray and dask. Nothing is held in memory but a block at a time.

The model is the nearest class mean, turned into probabilities. It stands for any model that xarray can apply.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr

import dask_uncert as du

SCENE = Path(__file__).parent / "data" / "indian_pines.zarr"


def posterior(spectra: np.ndarray, means: np.ndarray, scale: float) -> np.ndarray:
    """Return probabilities (..., class) of spectra (..., band), from their distances to the class means."""
    distance = ((spectra[..., None, :] - means) ** 2).mean(axis=-1)
    weight = np.exp((distance.min(axis=-1, keepdims=True) - distance) / scale)
    return weight / weight.sum(axis=-1, keepdims=True)


def main(folder: Path) -> None:
    """Train on the labelled pixels that are not held out; evaluate the others; write the page."""
    scene = xr.open_zarr(SCENE, consolidated=False)
    features = scene.reflectance.isel(band=slice(None, None, 10)).astype("float32")
    classes = {int(code): name for code, name in scene.labels.attrs["classes"].items()}
    training = scene.labels.where(~scene.held_out, 0).compute()
    means = features.groupby(training).mean().drop_sel({"labels": [0]}).transpose("labels", "band").compute()
    lazy = xr.apply_ufunc(
        posterior,
        features.chunk(band=-1),
        kwargs={"means": means.to_numpy(), "scale": 50_000.0},
        input_core_dims=[["band"]],
        output_core_dims=[["class"]],
        dask="parallelized",
        dask_gufunc_kwargs={"output_sizes": {"class": len(classes)}},
        output_dtypes=["float32"],
    )
    evaluation = du.evaluate(
        lazy, scene.labels, mask=scene.held_out, axis="class", classes=classes, ignore=0, measures=["entropy"]
    )
    du.report(evaluation, folder)
    print(f"accuracy {du.accuracy(evaluation):.4f}, page: {folder / 'report.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/lazy_pipeline"))
