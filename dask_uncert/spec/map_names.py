"""Names of the maps of soft confusion."""

from __future__ import annotations

import re

from dask_uncert.summaries.evaluation import Class


def soft_labels(table: tuple[Class, ...]) -> list[str]:
    """Return the label of each class in names of maps: its name made safe, doubles with their code."""
    safe = [re.sub(r"[^\w-]+", "_", entry.name) for entry in table]
    return [name if safe.count(name) == 1 else f"{name}_{entry.code}" for name, entry in zip(safe, table, strict=True)]


def soft_weight_map(cell: str, label: str) -> str:
    """Return the name of the map of a class's weights of TP, TN, FP or FN."""
    return f"soft_{cell}_{label}"


def soft_picture(label: str) -> str:
    """Return the name of the coloured map of all four."""
    return f"soft_{label}"


def soft_picture_label(name: str) -> str:
    """Return the label in the name of a coloured map."""
    return name.removeprefix("soft_")
