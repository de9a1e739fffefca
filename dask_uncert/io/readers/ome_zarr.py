"""What OME-Zarr says of an image: which levels it has, what its axes are, where it lies. Versions 0.4 and 0.5.

Of versions before, which name axes or not and never say where an image lies, levels are found as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """One level of an image: its array's path, its axes' names, and, where that is said, scale and translation.

    scale, translation: of every axis, in `units`, which are None where an axis has none.
    """

    path: str
    dims: tuple[str, ...] | None
    space: tuple[bool, ...] = ()
    scale: tuple[float, ...] | None = None
    translation: tuple[float, ...] = ()
    units: tuple[str | None, ...] = ()

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where voxel centres lie, under the names the dimensions go by; None where the metadata do not say."""
        if self.scale is None or self.dims is None:
            return None
        chosen = [i for i, name in enumerate(self.dims) if self.space[i] and name in WORLD]
        if not chosen:
            return None
        known = [MILLIMETRES.get(self.units[i] or "") for i in chosen]
        affine = np.zeros((3, len(chosen) + 1))
        for column, (i, factor) in enumerate(zip(chosen, known, strict=True)):
            row = WORLD.index(self.dims[i])
            affine[row, column] = self.scale[i] * (factor or 1.0)
            affine[row, -1] = self.translation[i] * (factor or 1.0)
        return geometry_of(affine, tuple(dims[i] for i in chosen), None, "1" if None in known else "mm")


def is_level(store: str, path: str) -> bool:
    """Whether a local array may be a level of an image: metadata of one lie in the folder above it."""
    above = os.path.join(store, os.path.dirname(path))
    for name in (".zattrs", "zarr.json"):
        try:
            with open(os.path.join(above, name), encoding="utf-8") as file:
                if "multiscales" in file.read():
                    return True
        except OSError:
            continue
    return False


def image_of(group: Any, path: str, where: str) -> Image | None:
    """What the store's group says of the array at `path`: a level of an image, or an image, whose first is meant.

    None where there is no image's metadata. where: for messages. Raises InputError for metadata that cannot be right.
    """
    here = group[path] if path else group
    if hasattr(here, "shape"):  # an array: a level of the image above it, perhaps
        above, _, name = path.rpartition("/")
        parent = group[above] if above else group
        listed = _multiscales(parent, where)
        for one in listed:
            for at, level in enumerate(_levels(one, where)):
                if level.strip("/") == name:
                    return _image(one, at, path, here, where)
        return None
    listed = _multiscales(here, where)
    if not listed:
        return None
    if len(listed) > 1:
        names = ", ".join(str(level) for one in listed for level in _levels(one, where))
        raise InputError(f"{where} holds {len(listed)} images; name a level with `array`: {names}.")
    (one,) = listed
    level = f"{path}/{_levels(one, where)[0]}".strip("/")
    try:
        array = group[level]
    except KeyError:
        raise InputError(
            f"{where}: its metadata name the level {level!r}, but there is no such array."
        ) from None
    return _image(one, 0, level, array, where)


def _multiscales(group: Any, where: str) -> list[Mapping[str, Any]]:
    attributes = dict(group.attrs)
    inner = attributes.get("ome")
    found = (inner if isinstance(inner, Mapping) else attributes).get("multiscales", [])
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise InputError(f"{where}: its metadata `multiscales` are no list of images: {_short(found)}.")
    return found


def _levels(one: Mapping[str, Any], where: str) -> list[str]:
    datasets = one.get("datasets")
    if not isinstance(datasets, list) or not datasets:
        raise InputError(f"{where}: its OME-Zarr metadata list no `datasets`: {_short(one)}.")
    paths = [level.get("path") if isinstance(level, Mapping) else None for level in datasets]
    if not all(isinstance(path, str) and path and ".." not in path.split("/") for path in paths):
        raise InputError(
            f"{where}: its OME-Zarr metadata have `datasets` without a usable `path`: {_short(datasets)}."
        )
    return [str(path) for path in paths]


def _image(one: Mapping[str, Any], at: int, path: str, array: Any, where: str) -> Image:
    axes = one.get("axes")
    if axes is None:
        return Image(path, None)
    if not isinstance(axes, list) or not axes:
        raise InputError(f"{where}: its OME-Zarr metadata have `axes` that are no list: {_short(axes)}.")
    if all(isinstance(axis, str) for axis in axes):  # version 0.3
        return Image(path, _names(axes, array, where))
    if not all(isinstance(axis, Mapping) and isinstance(axis.get("name"), str) for axis in axes):
        raise InputError(f"{where}: its OME-Zarr metadata have `axes` without names: {_short(axes)}.")
    dims = _names([axis["name"] for axis in axes], array, where)
    space = tuple(axis.get("type") == "space" for axis in axes)
    units = tuple(axis.get("unit") if isinstance(axis.get("unit"), str) else None for axis in axes)
    scale, translation = np.ones(len(dims)), np.zeros(len(dims))
    said = False
    level = one["datasets"][at]
    for given in (level.get("coordinateTransformations"), one.get("coordinateTransformations")):
        for step in _steps(given, where):
            said = True
            values = _values(step, len(dims), where)
            if step["type"] == "scale":
                scale, translation = scale * values, translation * values
            elif step["type"] == "translation":
                translation = translation + values
    if not said:
        raise InputError(
            f"{where}: its OME-Zarr metadata state no `coordinateTransformations` for the level {path!r}."
        )
    return Image(path, dims, space, tuple(scale.tolist()), tuple(translation.tolist()), units)


def _names(names: Sequence[str], array: Any, where: str) -> tuple[str, ...]:
    if len(names) != array.ndim or len(set(names)) != len(names):
        raise InputError(
            f"{where}: its OME-Zarr metadata name the axes {', '.join(names)}, but the array has shape {array.shape}."
        )
    return tuple(names)


def _steps(given: Any, where: str) -> list[Mapping[str, Any]]:
    steps = [] if given is None else given
    kinds = ("scale", "translation", "identity")
    usable = isinstance(steps, list) and all(isinstance(s, Mapping) and s.get("type") in kinds for s in steps)
    if not usable:
        raise InputError(
            f"{where}: its OME-Zarr metadata have `coordinateTransformations` other than scale and translation: "
            f"{_short(given)}."
        )
    return list(steps)


def _values(step: Mapping[str, Any], axes: int, where: str) -> Any:
    if step["type"] == "identity":
        return np.ones(axes)
    given = step.get(step["type"])
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if (
        values.shape != (axes,)
        or not np.isfinite(values).all()
        or (step["type"] == "scale" and (values <= 0).any())
    ):
        raise InputError(
            f"{where}: its OME-Zarr metadata state {step['type']} {_short(given)}; expected {axes} numbers"
            f"{' above 0' if step['type'] == 'scale' else ''}."
        )
    return values


def _short(value: Any, most: int = 120) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= most else text[: most - 3] + "..."
