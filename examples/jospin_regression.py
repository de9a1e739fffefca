"""Is the stated uncertainty of a regression calibrated? [J22]'s curves for three models on drawn data.

The curve of a calibrated model is the diagonal; below it a model is overconfident, above it underconfident.
"""

import dask.array as da
import matplotlib.pyplot as plt

import dask_uncert as du

SHAPE, CHUNKS = (600, 600, 2), (300, 300, 2)
MODELS = {1.0: "calibrated", 0.5: "overconfident: half of sigma", 2.0: "underconfident: twice sigma"}


def main() -> None:
    """Draw a reference around a predicted mean, state its sigma right and wrong, print and draw what comes out."""
    random = da.random.default_rng(0)
    mean = random.normal(size=SHAPE, chunks=CHUNKS)
    sigma = random.uniform(0.5, 2.0, size=SHAPE, chunks=CHUNKS)
    reference = mean + sigma * random.normal(size=SHAPE, chunks=CHUNKS)
    _, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
    for factor, name in MODELS.items():
        found = du.evaluate_regression(mean, reference, variance=(factor * sigma) ** 2, output_axis=-1)
        coverage = ", ".join(f"{share:.1%} of {p:g}" for p, share in du.regression_coverage(found).items())
        print(
            f"sigma x {factor:g}: {du.regression_side(found)}, area {du.regression_area(found):.4f}, "
            f"squared distance {du.regression_distance(found):.2g}; coverage {coverage}"
        )
        axis.plot(*du.regression_curve(found), label=name)
    axis.plot([0, 1], [0, 1], "k:", linewidth=1)
    axis.set(xlabel="predicted probability", ylabel="observed probability", aspect="equal")
    axis.legend()
    plt.show()


if __name__ == "__main__":
    main()
