"""Measures of uncertainty as a user may write them, to import by name."""

import numpy as np


def spread(p):
    """Half of Gini's measure without its normalisation: in [0, 1/2 (1 - 1/C)]."""
    return 0.5 * (p * (1 - p)).sum(axis=1)


def of_first(p):
    return 1 - p[:, 0]


def whole(p):
    return (p * (1 - p)).sum()


def ranked(p):
    return np.sort(spread(p))
