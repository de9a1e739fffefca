"""Is the stated uncertainty of a regression calibrated? Drawn data, three models: as sure as right, half, twice.

The curve of a calibrated model is the diagonal; below it a model is overconfident. Run it with
`python examples/regression_calibration.py`.
"""

import dask.array as da

import dask_uncert as du

SHAPE, CHUNKS = (600, 600, 2), (300, 300, 2)


def main() -> None:
    """Draw a reference around a predicted mean, state its sigma right and wrong, print what comes out."""
    random = da.random.default_rng(0)
    mean = random.normal(size=SHAPE, chunks=CHUNKS)
    sigma = random.uniform(0.5, 2.0, size=SHAPE, chunks=CHUNKS)
    reference = mean + sigma * random.normal(size=SHAPE, chunks=CHUNKS)
    for factor in (1.0, 0.5, 2.0):
        found = du.evaluate_regression(mean, reference, variance=(factor * sigma) ** 2, output_axis=-1)
        coverage = ", ".join(f"{share:.1%} of {p:g}" for p, share in du.regression_coverage(found).items())
        print(
            f"sigma x {factor:g}: {du.regression_side(found)}, area {du.regression_area(found):.4f}, "
            f"squared distance {du.regression_distance(found):.2g}; coverage {coverage}"
        )


if __name__ == "__main__":
    main()
