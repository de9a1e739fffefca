"""Reference systems as text: a short spelling, and whether two spellings mean the same."""

from __future__ import annotations

import re


def canonical_crs(text: str) -> str:
    """Return a reference system as its authority's code if its WKT names one, else as text on one line.

    >>> canonical_crs('PROJCRS["WGS 84 / UTM zone 16N", ID["EPSG",32616]]')
    'EPSG:32616'
    """
    line = " ".join(text.split())
    code = re.search(r'(?:AUTHORITY|ID)\["(\w+)",\s*"?(\w+)"?\]\s*\]$', line)
    return f"{code[1]}:{code[2]}" if code else line


def same_reference_system(first: str, second: str) -> bool:
    """Return whether two reference systems mean the same, whatever their spelling, as far as PROJ is installed.

    The order of their axes does not matter: positions are always x east and y north.
    """
    if first == second:
        return True
    try:
        return _same_by_rasterio(first, second)
    except ModuleNotFoundError:
        pass
    try:
        return _same_by_pyproj(first, second)
    except ModuleNotFoundError:
        return False


def _same_by_rasterio(first: str, second: str) -> bool:
    from rasterio.crs import CRS
    from rasterio.errors import CRSError

    try:
        one, other = CRS.from_user_input(first), CRS.from_user_input(second)
    except CRSError:
        return False
    code = one.to_epsg()  # where axes are in another order, only the code shows that the systems are the same
    return bool(one == other) or (code is not None and code == other.to_epsg())


def _same_by_pyproj(first: str, second: str) -> bool:
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return bool(CRS.from_user_input(first).equals(CRS.from_user_input(second), ignore_axis_order=True))
    except CRSError:
        return False
