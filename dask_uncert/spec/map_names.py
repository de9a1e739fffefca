"""Names of the maps of soft confusion."""

from __future__ import annotations

import re

from dask_uncert.summaries.evaluation import Class


def soft_labels(table: tuple[Class, ...]) -> list[str]:
    """What the maps of each class are called, `soft_<label>`: array names, doubles with their code."""
    safe = [re.sub(r"[^\w-]+", "_", one.name) for one in table]
    return [
        name if safe.count(name) == 1 else f"{name}_{one.code}" for name, one in zip(safe, table, strict=True)
    ]
