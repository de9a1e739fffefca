"""Table 1 of [A22] from its counts: 131 images, uncertain above .3. Shares are rounded here; the paper cuts digits."""

import numpy as np

import dask_uncert as du

COUNTS = {  # wrong and uncertain, wrong and certain, right and uncertain, right and certain
    "MC dropout": (5, 1, 37, 88),
    "ensemble of MC dropout": (7, 2, 29, 93),
    "ensemble": (5, 1, 28, 97),
}

for name, counts in COUNTS.items():
    right = np.repeat([0, 0, 1, 1], counts)
    p = np.repeat([0.7, 0.99, 0.7, 0.99], counts)  # entropy .881 and .081; class 1 is always decided
    evaluation = du.evaluate(np.stack([1 - p, p], axis=-1), right, measures=["entropy"])
    table = du.uncertainty_confusion(evaluation, "entropy", 0.3)
    shares = (f"{score} {table[score].item():.3f}" for score in ("USen", "USpe", "UPre", "UAcc"))
    print(f"{name + ':':24} {', '.join(shares)}")
