"""A caller's words on confidence intervals of a scene to the tiles that a Request keeps apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.spec.request import Request
from dask_uncert.summaries.tiles import MOST, TILE, TileWish

WORDS = ("unit", "size", "replicates", "level", "seed", "method")
METHODS = ("bca", "percentile")


def tiles_from(words: Mapping[str, Any]) -> TileWish:
    """The tiles that these words ask for; InputError for a word that is unknown or has no sense."""
    unknown = [word for word in words if word not in WORDS]
    if unknown:
        raise InputError(
            f"confidence: unknown word {', '.join(map(repr, unknown))}; known: {', '.join(WORDS)}."
        )
    words = {word: value for word, value in words.items() if value is not None}
    if words.get("unit", "tile") != "tile":
        raise InputError(f"confidence: the unit of a scene is `tile`, found {words['unit']!r}.")
    how = Confidence()
    for word, least in (("size", 1), ("replicates", 1), ("seed", 0)):
        value = words.get(word, least)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"confidence: {word} must be a whole number, {least} or above, found {value!r}.")
    level, method = words.get("level", how.level), words.get("method", how.method)
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"confidence: level must lie in (0, 1), found {level!r}.")
    if method not in METHODS:
        raise InputError(f"confidence: method {method!r} is not one of {', '.join(METHODS)}.")
    chosen = Confidence(
        words.get("replicates", how.replicates), float(level), words.get("seed", how.seed), method
    )
    return TileWish(words.get("size"), chosen)


def with_tiles(request: Request, shape: Sequence[int]) -> Request:
    """The Request whose tiles have a size that suits a grid; InputError where the size asked for makes too many."""
    if request.tiles is None:
        return request
    size = TILE
    while _number(shape, size) > MOST:
        size *= 2
    wished = request.tiles.size
    if wished is not None and _number(shape, wished) > MOST:
        raise InputError(
            f"confidence: tiles of {wished} pixels a side are {_number(shape, wished)} on a grid of "
            f"{' x '.join(map(str, shape))}, at most {MOST} are kept apart. Give `size: {size}` or more, or leave it out."
        )
    return replace(request, tiles=request.tiles._replace(size=wished or size))


def _number(shape: Sequence[int], size: int) -> int:
    return math.prod(-(-n // size) for n in shape)
