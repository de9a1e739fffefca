"""The first time that a machine compiles, a second process compiles what the first one comes to last.

numba compiles in one thread of a process at a time, and finds in its cache what another process has left there meanwhile.
"""

from __future__ import annotations

import numba
import numpy as np

from dask_uncert.blocks.kernels import histograms, probabilities, singles, values
from dask_uncert.blocks.kernels.types import NO_TILES, Pixels, ScoreCounts, ValueBins, ValueCounts, finder


def compile_last_parts() -> None:
    """Compile the steps of `measure` for the types with which it calls them, in that order, then `count_values`."""
    ends, counts, number = finder((0.0, 1.0), 1.0), np.zeros(8, np.int64), 1
    work, scores = probabilities.stated_work(1, ends), ScoreCounts(counts, counts, counts, counts)
    p, floats = np.zeros((1, singles.PITCH), np.float32), np.zeros((singles.ROWS, singles.TILE), np.float32)
    rows, square = floats.view(np.int32), np.zeros((4, 4))
    for step, *given in (
        (probabilities.add_scores, p, rows[0], rows[0], floats[0], number, True, scores, work),
        (probabilities.put_right, p, number, ends, work.bin_of, work.packed),
        (singles.euclidean, p, floats, rows, number),
        (singles.kullback_leibler, p, floats, number),
        (singles.fisher_rao, p, floats, rows, number),
        (singles.homophily, p, floats, square),
    ):
        step.compile(tuple(map(numba.typeof, given)))
    none, small = np.zeros(0, np.int64), np.zeros(0, np.int16)
    batch = Pixels(np.zeros((0, 2), np.float32).T, small, small, small, np.zeros(0), np.zeros(0, np.uint8))
    into = ValueCounts(*(np.zeros(shape, np.int64) for shape in ((1, 2, 1), (1, 1, 2, 6), (2, 2, 12))))
    bins = [ValueBins(1.0, finder((0.0, 1.0), 1.0, octaves=True), into, wide=False)] * 2
    values.count_values(batch.values, histograms.group_decisions(none, batch, 1), none, batch, bins, NO_TILES)
