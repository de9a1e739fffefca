"""Types of arrays, named once for the whole package."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Indices = NDArray[np.int64]
Bools = NDArray[np.bool_]
