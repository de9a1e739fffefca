"""One array: the accuracy of some predictions, their calibration, and whether they are uncertain where they are wrong."""

import numpy as np

import dask_uncert as du

rng = np.random.default_rng(0)
probabilities = rng.dirichlet([0.4, 0.4, 0.4], size=(100, 100))  # y, x, class
drawn = rng.random((100, 100, 1)) > probabilities.cumsum(axis=-1)
reference = drawn.sum(axis=-1)  # each class as often as it was promised: calibrated

evaluation = du.evaluate(probabilities, reference, classes=["water", "forest", "field"], measures=["entropy"])

print(evaluation)
print(f"accuracy {du.accuracy(evaluation):.3f}")
print(f"calibration error {du.expected_calibration_error(evaluation):.3f}")
print(f"error AUROC of entropy {du.error_auroc(evaluation, 'entropy'):.3f}")
