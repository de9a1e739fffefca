"""The overview of a small scene: thinned maps in its output, from which its report can be written again."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from dask_uncert.io.map_types import Dim, Maps
from dask_uncert.io.paths import AnyPath

FILE = "figures/overview.npz"
DIMS = "dims.json"


def save_overview(folder: AnyPath, maps: Maps) -> None:
    """Write thinned maps into an output folder; the same maps give the same bytes."""
    target = io.BytesIO()
    dims = {name: [[dim, *dim.place] for dim in dims if isinstance(dim, Dim)] for name, (_, dims) in maps.items()}
    arrays: dict[str, Any] = {str(i): np.asarray(values, np.float32) for i, (values, _) in enumerate(maps.values())}
    arrays[DIMS] = np.array(json.dumps(dims))
    np.savez_compressed(target, **arrays)
    path = folder / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.getvalue())


def load_overview(folder: AnyPath) -> Maps:
    """Return the thinned maps of an output folder; {} if it has none."""
    path = folder / FILE
    if not path.exists():
        return {}
    with np.load(io.BytesIO(path.read_bytes())) as stored:
        named = json.loads(str(stored[DIMS]))
        return {
            name: (stored[str(i)].astype(np.float64), tuple(Dim.placed(*dim) for dim in dims))
            for i, (name, dims) in enumerate(named.items())
        }
