"""Plan a job: what it would read and write, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dask_uncert.clusters.memory import described_memory, described_threads
from dask_uncert.errors import without_secrets
from dask_uncert.execution.estimate import estimated
from dask_uncert.execution.estimate import probe as probe_pass
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.jobs.cohort.plan import plan_cohort
from dask_uncert.jobs.load import cluster_of, plan_job, read_job, resolve
from dask_uncert.jobs.schema import CohortJob


def plan(
    job: str | Path | Mapping[str, Any],
    *,
    cluster: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    probe: bool = True,
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
    probe : bool, default True
        Read and evaluate a few blocks, or a case, for about a second, to estimate how long the job takes.

    Returns
    -------
    dict
        Plain data. Always `tasks`, `bytes_read` (decoded, by input), `without_checksum` (inputs whose stored chunks have
        none, so that damage to them may pass unnoticed), `block_memory_bytes` (per thread, without Python's own), `maps`
        and `output`. Of a scene also `grid` and `block` (sizes by dimension), `blocks`, `chunk_reads` (the requests, where
        each is one) and `bytes_stored` (about, by input; None where not known); of a cohort `cases`, `patients`,
        `large_cases` (cut into blocks) and `unusable` (the reason, by case). With a probe also `estimate`: `core_hours`,
        the `threads` of the cluster and the `seconds` on them (both None if the cluster's description does not say them),
        without start and report; or the `reason` why the blocks could not be evaluated.

    Raises
    ------
    InputError
        If the job or an input cannot be used, or its blocks do not fit the memory in the cluster file; the message
        names chunks that would fit.

    Notes
    -----
    No cluster is started or contacted: the probe runs on this machine, so an estimate is for cores and storage like its
    own. Nothing is written, except to a temporary folder. The same as ``dask-uncert plan``.

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
    >>> plan = du.plan(job, probe=False)
    >>> plan["grid"], plan["blocks"], plan["bytes_read"]
    ({'y': 40, 'x': 60}, 1, {'probabilities': 19200, 'reference': 2400})
    """
    checked, folder = read_job(job, overrides)
    target, cohort = cluster or cluster_of(checked, folder), isinstance(checked, CohortJob)
    memory = described_memory(target, cohort)
    threads = described_threads(target, cohort) if probe else None
    if isinstance(checked, CohortJob):
        cost = plan_cohort(checked, folder).cost(memory, threads)
    else:
        scene = fit_to_memory(plan_job(checked, folder), memory)
        stored = {name: cube.stored for name, cube in scene.scene.cubes.items() if cube.stored is not None}
        cost = {
            "grid": dict(zip(scene.grid.dims, scene.grid.shape, strict=True)),
            "block": dict(zip(scene.grid.dims, scene.grid.block, strict=True)),
            "blocks": scene.grid.blocks,
            "tasks": scene.tasks(),
            "bytes_read": scene.nbytes(),
            "bytes_stored": {name: array.stored_bytes() for name, array in stored.items()},
            "chunk_reads": scene.chunk_reads(),
            "without_checksum": scene.without_checksum(),
            "block_memory_bytes": scene.block_memory(),
            "maps": list(scene.request.layers),
        }
        if threads is not None:
            cost["estimate"] = estimated(lambda: probe_pass(scene, threads[0]), threads[1])
    return without_secrets({**cost, "output": resolve(checked.output, folder)})
