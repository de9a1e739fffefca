"""The shipped random forest on the held-out pixels of Indian Pines, whose numbers the method states."""

from functools import cache
from pathlib import Path

import zarr

import dask_uncert as du

DATA = Path(__file__).parents[2] / "examples" / "data" / "indian_pines.zarr"
CORN_NOTILL = 1


@cache
def held_out():
    """Probabilities (9203, 16) float32 and class numbers (9203,)."""
    group = zarr.open_group(DATA, mode="r")
    chosen = group["held_out"][:]
    return group["random_forest"][:][chosen], group["labels"][:][chosen] - 1


@cache
def evaluation():
    """Evaluation of the held-out pixels."""
    return du.evaluate(*held_out())
