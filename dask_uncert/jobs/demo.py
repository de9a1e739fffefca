"""A scene to try the package with: made from a seed, with the job that evaluates it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import softmax

from dask_uncert.errors import InputError, OutputError
from dask_uncert.formulas.typing import Floats
from dask_uncert.io.writers.zarr import NewArray, write_group

CLASSES = {1: "water", 2: "forest", 3: "grassland", 4: "cropland", 5: "settlement"}
SHAPE = 192, 256
PIXEL = 10.0  # m
JOB = """\
# A made-up land-cover map and the probabilities of a model that is right for about 4 of 5 pixels, and too sure of itself.
#
#   dask-uncert run job.yaml
#
# `dask-uncert schema KEY` explains a key, e.g. `dask-uncert schema soft_confusion`.
version: 1
kind: scene

inputs:                                # paths are relative to this file
  probabilities: {store: scene.zarr, array: probabilities}
  reference: {store: scene.zarr, array: reference}
  mask: {store: scene.zarr, array: held_out}       # true counts: pixels the model was not trained on

classes: {1: water, 2: forest, 3: grassland, 4: cropland, 5: settlement}   # code in the reference: name
ignore: [0]                            # nobody labelled these pixels

measures: [gini, entropy]              # how uncertain the model is at each pixel
soft_confusion:                        # what if the threshold on a probability is not certain?
  - {class: settlement, thresholds: [0.3, 0.5], sigmas: [0, 0.1], dampings: [0, 1], uncertainty: entropy}
confidence: {size: 16}                 # intervals, from drawing tiles of 16 x 16 pixels
maps: [entropy, predicted, correct]

output: results
"""


def demo(folder: str | Path = "dask_uncert_demo", *, seed: int = 0) -> Path:
    """Write a small scene and a job that evaluates it.

    Parameters
    ----------
    folder : str or path, default "dask_uncert_demo"
        A folder that is new or empty.
    seed : int, default 0
        Another seed makes another scene.

    Returns
    -------
    pathlib.Path
        The job file, ``job.yaml`` in the folder.

    Raises
    ------
    InputError
        If the folder holds anything; nothing is written then.
    OutputError
        If the folder cannot be written.

    Notes
    -----
    The scene has 192 x 256 pixels of 10 m and 5 classes. Classes are where the largest of five smooth random fields is; the
    model sees these fields with noise. It is too sure of itself, as many neural networks are. Needs no file of the
    repository and no network. The command is ``dask-uncert demo``.

    Examples
    --------
    >>> import tempfile, dask_uncert as du
    >>> du.demo(tempfile.mkdtemp()).name
    'job.yaml'
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists and is not an empty folder; name a new folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_group(path / "scene.zarr", scene(seed))
        with (path / "job.yaml").open("x", encoding="utf-8") as file:
            file.write(JOB)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.") from None
    return path / "job.yaml"


def scene(seed: int) -> dict[str, NewArray]:
    """Return the arrays of the scene and its coordinates, by name."""
    rng = np.random.default_rng(seed)
    fields = _fields(rng, 9) + np.array([0.1, 0.5, 0.2, 0.2, -0.6])  # how common a class is
    seen = fields + 0.25 * _fields(rng, 3) + 0.3 * rng.standard_normal(fields.shape)
    reference = (fields.argmax(axis=-1) + 1).astype(np.uint8)
    reference[_fields(rng, 5)[..., 0] > 2] = 0
    rows, columns = np.indices(SHAPE) // 16
    probabilities = softmax(5 * seen, axis=-1).astype(np.float32)
    position = {dim: 20_000 + PIXEL * (np.arange(n) + 0.5) for dim, n in zip("yx", SHAPE, strict=True)}
    about = {dim: {"units": "m", "standard_name": f"projection_{dim}_coordinate"} for dim in position}
    return {
        "probabilities": NewArray(("y", "x", "class"), probabilities),
        "reference": NewArray(("y", "x"), reference, {"classes": {str(code): name for code, name in CLASSES.items()}}),
        "held_out": NewArray(("y", "x"), (rows + columns) % 3 > 0),
        **{dim: NewArray((dim,), values, about[dim]) for dim, values in position.items()},
    }


def _fields(rng: np.random.Generator, width: float) -> Floats:
    """Return a smooth random field for each class, of mean about 0 and standard deviation 1; width: in pixels."""
    fields = gaussian_filter(rng.standard_normal((*SHAPE, len(CLASSES))), (width, width, 0))
    return np.asarray(fields / fields.std(axis=(0, 1)))
