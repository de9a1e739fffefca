"""Zones of a scene as the cases of a Stack."""

from __future__ import annotations

from dask_uncert.errors import InputError
from dask_uncert.summaries.case import Case
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Stack

ZONE = "zone"
"""The grouping column of zones."""


def zones(evaluation: Evaluation) -> Stack:
    """Return the zones of a scene as a Stack: a case is a zone, and its grouping column `zone` has its name.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned with `zones`, or a sum of such.

    Returns
    -------
    Stack
        Of the zones that were named, or of those that occur. Their sum is the scene's Evaluation without tiles, but for
        pixels in no zone, which are left out.

    Raises
    ------
    InputError
        If the scene was evaluated without zones, or no pixel is in one.

    Examples
    --------
    >>> import dask_uncert as du
    >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1], zones=[5, 7])
    >>> stack = du.zones(evaluation)
    >>> stack.names, stack.total() == evaluation.alone()
    (('5', '7'), True)
    """
    names = zone_names(evaluation)
    if not names:
        raise InputError("this evaluation has no zones. Evaluate the scene with `zones`.")
    parts = {Case(name, groups=((ZONE, name),)): evaluation.zone(name).alone() for name in names}
    return Stack.of(parts)


def zone_names(evaluation: Evaluation) -> list[str]:
    """Return the names of zones, in the order of their codes; none without zones."""
    return [] if evaluation.zones is None else [zone.name for zone in evaluation.zones.table]
