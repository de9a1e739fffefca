"""Figures 8 and 9 of [S22] on real data: soft confusion under an uncertain threshold, as a map and as curves.

Data: the class Corn-notill of the Indian Pines scene, damped by the entropy of the prediction.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import dask_uncert as du

SCENE = Path(__file__).parent / "data" / "indian_pines.zarr"
CLASS, CODE, THRESHOLD = "Corn-notill", 2, 0.3
SETTINGS = [(0.0, 0.0), (0.1, 0.0), (0.1, 1.0)]  # sigma, damping
COLOURS = {"TP": (0, 0.6, 0), "FP": (0.9, 0, 0), "TN": (0, 0.2, 0.9), "FN": (0.6, 0, 0.6)}


def picture(weights: dict[str, np.ndarray]) -> np.ndarray:
    """Return an image (y, x, 3) from white: each pixel has the colour of its cell, as strong as its weight."""
    image = np.ones((*weights["TP"].shape, 3))
    for cell, colour in COLOURS.items():
        image -= np.nan_to_num(weights[cell])[..., None] * (1 - np.array(colour))
    return image


if __name__ == "__main__":
    scene = xr.open_zarr(SCENE, consolidated=False).load()
    p = scene.random_forest.to_numpy()
    u = du.geometric_uncertainty(p, "kullback-leibler", 1)
    truth = np.where(scene.labels == 0, np.nan, scene.labels == CODE)

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
    for axis, (sigma, damping) in zip(axes, SETTINGS, strict=True):
        weights = du.soft_weights(p[..., CODE - 1].astype(float), truth, THRESHOLD, sigma, u.astype(float), damping)
        axis.imshow(picture(weights))
        axis.set(title=f"sigma {sigma:g}, damping {damping:g}", xticks=[], yticks=[])
    figure.suptitle("TP green, FP red, TN blue, FN purple; paler is less certain")

    thresholds = np.linspace(0.05, 0.95, 91).round(2).tolist()
    evaluation = du.evaluate(
        scene.random_forest,
        scene.labels,
        mask=scene.held_out,
        classes={int(code): name for code, name in scene.labels.attrs["classes"].items()},
        ignore=0,
        measures=["entropy"],
        soft_confusion={"class": CLASS, "thresholds": thresholds, "uncertainty": "entropy"},
    )
    swept = du.sweep(evaluation, CLASS, thresholds, [0, 0.05, 0.1, 0.2], [0, 1])
    print(f"largest error bound of F1 {np.nanmax(swept.bounds['f1']):.1e}")

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    for j, axis in enumerate(axes):
        for i, sigma in enumerate([0, 0.05, 0.1, 0.2]):
            axis.plot(thresholds, swept.values["f1"][:, i, j], label=f"sigma {sigma:g}")
        axis.set(title=f"damping {j}", xlabel="threshold", ylabel="F1")
    axes[0].legend()
    plt.show()
