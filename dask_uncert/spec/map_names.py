"""Names of the maps of soft confusion and of prediction sets."""

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


SET_SIZE, IN_SET = "set_size_", "in_set_"
"""Starts of the names of maps of prediction sets."""


def set_size_map(threshold: float) -> str:
    """Return the name of the map of the number of classes in the set of each pixel.

    >>> set_size_map(0.196), in_set_map(0.196, "Corn")
    ('set_size_0.196', 'in_set_0.196_Corn')
    """
    return f"{SET_SIZE}{threshold:g}"


def in_set_map(threshold: float, label: str) -> str:
    """Return the name of the map of where a class is in the set."""
    return f"{IN_SET}{threshold:g}_{label}"
