"""Three Gaussian classes, as figure 3 of [C23]: how four measures of uncertainty change with the third mean.

The means are (0, 0), (2, 0) and alpha (1, 1), each with unit covariance. Homophily uncertainty (HU) knows how far
the classes are apart; the others see the probabilities alone.
"""

import matplotlib.pyplot as plt
import numpy as np

import dask_uncert as du


def posterior(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the class probabilities (..., class) of points (..., 2), with equal priors."""
    density = np.exp(-((points[..., None, :] - means) ** 2).sum(axis=-1) / 2)
    return density / density.sum(axis=-1, keepdims=True)


def measures(points: np.ndarray, alpha: float) -> dict[str, np.ndarray]:
    """Return the four measures at points (..., 2)."""
    means = np.array([[0, 0], [2, 0], [alpha, alpha]])
    p = posterior(points, means)
    distances = np.abs(means[:, None] - means).max(axis=-1)  # infinity norm
    return {
        "Fisher-Rao, n = 2": du.geometric_uncertainty(p, "fisher-rao", 2),
        "Gini": du.geometric_uncertainty(p, "euclidean", 2),
        "entropy": du.geometric_uncertainty(p, "kullback-leibler", 1),
        "HU": du.homophily_uncertainty(p, distances),
    }


if __name__ == "__main__":
    for alpha in (0.0, 1.0, 2.0):
        at = ", ".join(f"{name} {value:.6f}" for name, value in measures(np.array([1.0, 1.0]), alpha).items())
        print(f"x = (1, 1), alpha {alpha:g}: {at}")

    side = np.linspace(-2, 4, 200)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    figure, axes = plt.subplots(3, 4, figsize=(10, 7.5), sharex=True, sharey=True, layout="constrained")
    for row, alpha in zip(axes, (0.0, 1.0, 2.0), strict=True):
        for axis, (name, values) in zip(row, measures(grid, alpha).items(), strict=True):
            image = axis.imshow(values, origin="lower", extent=(-2, 4, -2, 4), vmin=0, vmax=1)
            axis.plot([0, 2, alpha], [0, 0, alpha], "w+")
            axis.set_title(f"{name}, alpha {alpha:g}", fontsize=9)
    figure.colorbar(image, ax=axes, label="uncertainty")
    plt.show()
