"""Arrays for tests of what happens before anything is read."""

import numpy as np


class Unreadable:
    """An array that has a shape and a dtype, but may not be read."""

    def __init__(self, shape, dtype="float32"):
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)

    def __getitem__(self, region):
        raise AssertionError(f"read {region}")


class Stored:
    """An array that is read region by region, as from a store."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim

    def __getitem__(self, key):
        return self.values[key]
