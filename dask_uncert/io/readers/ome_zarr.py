"""Metadata of OME-Zarr images, versions 0.4 and 0.5: levels, axes, scale and translation.

Levels of earlier versions are found too; these may not name axes and never have a scale.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.io.geometry import Geometry, geometry_of

MILLIMETRES = {
    "meter": 1e3, "decimeter": 1e2, "centimeter": 10.0, "millimeter": 1.0, "micrometer": 1e-3, "nanometer": 1e-6,
    "angstrom": 1e-7, "picometer": 1e-9, "kilometer": 1e6, "inch": 25.4, "foot": 304.8,
}  # fmt: skip
WORLD = "xyz"


@dataclass(frozen=True)
class Image:
    """One level of an image: its array's path, names and types of its axes, and scale and translation if known.

    scale, translation: of every axis, in `units`, which are None for an axis without. channels: their names.
    """

    path: str
    dims: tuple[str, ...] | None
    types: tuple[str, ...] = ()
    scale: tuple[float, ...] | None = None
    translation: tuple[float, ...] = ()
    units: tuple[str | None, ...] = ()
    channels: tuple[str, ...] = ()

    def labels(self, axis: int) -> tuple[str, ...] | None:
        """Return the names of the channels, if the axis is that of channels and they have any."""
        return self.channels if self.types[axis : axis + 1] == ("channel",) and any(self.channels) else None

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Return the positions of voxel centres; None if the metadata have no scale."""
        if self.scale is None or self.dims is None:
            return None
        chosen = [i for i, name in enumerate(self.dims) if self.types[i] == "space" and name in WORLD]
        if not chosen:
            return None
        known = [MILLIMETRES.get(self.units[i] or "") for i in chosen]
        affine = np.zeros((3, len(chosen) + 1))
        units: list[float | None] = [1.0, 1.0, 1.0]
        for column, (i, factor) in enumerate(zip(chosen, known, strict=True)):
            row = WORLD.index(self.dims[i])
            affine[row, column] = self.scale[i] * (factor or 1.0)
            affine[row, -1] = self.translation[i] * (factor or 1.0)
            units[row] = factor
        geometry = geometry_of(affine, tuple(dims[i] for i in chosen), None, "1" if None in known else "mm")
        return replace(geometry, stored_units=(units[0], units[1], units[2]))


def is_level(store: str, path: str) -> bool:
    """Return whether a local array may be a level of an image: the folder above has metadata of one."""
    above = os.path.join(store, os.path.dirname(path))
    for name in (".zattrs", "zarr.json"):
        with suppress(OSError), open(os.path.join(above, name), encoding="utf-8") as file:
            if "multiscales" in file.read():
                return True
    return False


def image_of(group: Any, path: str, where: str) -> Image | None:
    """Return the metadata of the level at `path`, or of the first level of the image at `path`; None if there are none.

    where: for messages. Raises InputError for metadata that cannot be right.
    """
    node = group[path] if path else group
    if hasattr(node, "shape"):  # an array, perhaps a level of the image above it
        above, _, name = path.rpartition("/")
        parent = group[above] if above else group
        for image in _multiscales(parent, where):
            for number, level in enumerate(_levels(image, where)):
                if level.strip("/") == name:
                    return replace(_image(image, number, path, node, where), channels=_channels(parent))
        return None
    images = _multiscales(node, where)
    if not images:
        return None
    if len(images) > 1:
        names = ", ".join(level for image in images for level in _levels(image, where))
        raise InputError(f"{where} holds {len(images)} images; name a level with `array`: {names}.")
    (image,) = images
    level = f"{path}/{_levels(image, where)[0]}".strip("/")
    try:
        array = group[level]
    except KeyError:
        raise InputError(f"{where}: its metadata name a level {level!r} that has no array.") from None
    return replace(_image(image, 0, level, array, where), channels=_channels(node))


def _multiscales(group: Any, where: str) -> list[Mapping[str, Any]]:
    attributes = dict(group.attrs)
    inner = attributes.get("ome")
    images = (inner if isinstance(inner, Mapping) else attributes).get("multiscales", [])
    if not isinstance(images, list) or not all(isinstance(image, Mapping) for image in images):
        raise InputError(f"{where}: its metadata `multiscales` are not a list of images: {_short(images)}.")
    return images


def _channels(group: Any) -> tuple[str, ...]:
    """Return the names of an image's channels, "" where one has none; () where the metadata list no channels."""
    attributes = dict(group.attrs)
    inner = attributes.get("ome")
    shown = (inner if isinstance(inner, Mapping) else attributes).get("omero")
    channels = shown.get("channels") if isinstance(shown, Mapping) else None
    if not isinstance(channels, list) or not all(isinstance(channel, Mapping) for channel in channels):
        return ()
    return tuple(str(channel.get("label", "")) for channel in channels)


def _levels(image: Mapping[str, Any], where: str) -> list[str]:
    datasets = image.get("datasets")
    if not isinstance(datasets, list) or not datasets:
        raise InputError(f"{where}: its OME-Zarr metadata list no `datasets`: {_short(image)}.")
    paths = [level.get("path") if isinstance(level, Mapping) else None for level in datasets]
    if not all(isinstance(path, str) and path and ".." not in path.split("/") for path in paths):
        raise InputError(f"{where}: its OME-Zarr metadata have no usable `path`: {_short(datasets)}.")
    return [str(path) for path in paths]


def _image(image: Mapping[str, Any], number: int, path: str, array: Any, where: str) -> Image:
    axes = image.get("axes")
    if axes is None:
        return Image(path, None)
    if not isinstance(axes, list) or not axes:
        raise InputError(f"{where}: its OME-Zarr metadata have `axes` that are not a list: {_short(axes)}.")
    if all(isinstance(axis, str) for axis in axes):  # version 0.3
        return Image(path, _names(axes, array, where))
    if not all(isinstance(axis, Mapping) and isinstance(axis.get("name"), str) for axis in axes):
        raise InputError(f"{where}: its OME-Zarr metadata have `axes` without names: {_short(axes)}.")
    dims = _names([axis["name"] for axis in axes], array, where)
    types = tuple(str(axis.get("type", "")) for axis in axes)
    units = tuple(axis.get("unit") if isinstance(axis.get("unit"), str) else None for axis in axes)
    scale, translation = np.ones(len(dims)), np.zeros(len(dims))
    parts = (image["datasets"][number], image)
    steps = [step for part in parts for step in _steps(part.get("coordinateTransformations"), where)]
    for step in steps:
        values = _values(step, len(dims), where)
        if step["type"] == "scale":
            scale, translation = scale * values, translation * values
        elif step["type"] == "translation":
            translation = translation + values
    if not steps:
        raise InputError(f"{where}: OME-Zarr metadata of level {path!r} lack `coordinateTransformations`.")
    return Image(path, dims, types, tuple(scale.tolist()), tuple(translation.tolist()), units)


def _names(names: Sequence[str], array: Any, where: str) -> tuple[str, ...]:
    if len(names) != array.ndim or len(set(names)) != len(names):
        raise InputError(
            f"{where}: its OME-Zarr metadata name the axes {', '.join(names)}, but the array has shape {array.shape}."
        )
    return tuple(names)


def _steps(transformations: Any, where: str) -> list[Mapping[str, Any]]:
    steps = [] if transformations is None else transformations
    kinds = ("scale", "translation", "identity")
    if not isinstance(steps, list) or not all(isinstance(s, Mapping) and s.get("type") in kinds for s in steps):
        raise InputError(
            f"{where}: its OME-Zarr metadata have `coordinateTransformations` other than scale and translation: "
            f"{_short(steps)}."
        )
    return list(steps)


def _values(step: Mapping[str, Any], axes: int, where: str) -> Any:
    if step["type"] == "identity":
        return np.ones(axes)
    numbers = step.get(step["type"])
    try:
        values = np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    least, above = (0.0, " above 0") if step["type"] == "scale" else (-np.inf, "")
    if values.shape != (axes,) or not np.isfinite(values).all() or (values <= least).any():
        raise InputError(
            f"{where}: its OME-Zarr metadata state {step['type']} {_short(numbers)}; expected {axes} numbers{above}."
        )
    return values


def _short(value: Any, most: int = 120) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= most else text[: most - 3] + "..."
