"""Plan a job: what it would read and write, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dask_uncert.clusters.memory import described_memory
from dask_uncert.errors import without_secrets
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.jobs.cohort.plan import plan_cohort
from dask_uncert.jobs.load import cluster_of, plan_job, read_job, resolve
from dask_uncert.jobs.schema import CohortJob


def plan(
    job: str | Path | Mapping[str, Any],
    *,
    cluster: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a job would read and write, in how many tasks and with how much memory.

    Parameters
    ----------
    job : str, path or mapping
        A job file, or its content as a mapping.
    cluster : str or path, optional
        ``"local"``, a cluster file or an address, instead of the job's `cluster`.
    overrides : mapping, optional
        Job keys and their values instead of the job's, such as ``{"calibration.bins": 20}``.

    Returns
    -------
    dict
        Plain data. Always `tasks`, `bytes_read` (decoded, by input), `block_memory_bytes` (per thread, without Python's
        own), `maps` and `output`. Of a scene also `grid` and `block` (sizes by dimension) and `blocks`; of a cohort
        `cases`, `patients`, `large_cases` (cut into blocks) and `unusable` (the reason, by case).

    Raises
    ------
    InputError
        If the job or an input cannot be used, or its blocks do not fit the memory in the cluster file; the message
        names chunks that would fit.

    Notes
    -----
    Nothing is computed and no cluster is started or contacted. The same as ``dask-uncert plan``.

    Examples
    --------
    >>> import tempfile, numpy as np, dask_uncert as du
    >>> folder = tempfile.mkdtemp()
    >>> np.save(f"{folder}/p.npy", np.full((40, 60), 0.25))
    >>> np.save(f"{folder}/y.npy", np.zeros((40, 60), np.uint8))
    >>> inputs = {
    ...     "probabilities": {"store": f"{folder}/p.npy", "dims": ["y", "x"]},
    ...     "reference": {"store": f"{folder}/y.npy", "dims": ["y", "x"]},
    ... }
    >>> job = {"version": 1, "kind": "scene", "classes": {0: "a", 1: "b"}, "inputs": inputs, "output": "out"}
    >>> plan = du.plan(job)
    >>> plan["grid"], plan["blocks"], plan["bytes_read"]
    ({'y': 40, 'x': 60}, 1, {'probabilities': 19200, 'reference': 2400})
    """
    checked, folder = read_job(job, overrides)
    memory = described_memory(cluster or cluster_of(checked, folder), isinstance(checked, CohortJob))
    if isinstance(checked, CohortJob):
        cost = plan_cohort(checked, folder).cost(memory)
    else:
        scene = fit_to_memory(plan_job(checked, folder), memory)
        cost = {
            "grid": dict(zip(scene.grid.dims, scene.grid.shape, strict=True)),
            "block": dict(zip(scene.grid.dims, scene.grid.block, strict=True)),
            "blocks": scene.grid.blocks,
            "tasks": scene.tasks(),
            "bytes_read": scene.nbytes(),
            "block_memory_bytes": scene.block_memory(),
            "maps": list(scene.request.layers),
        }
    return without_secrets({**cost, "output": resolve(checked.output, folder)})
