"""What a report reads from counts besides what it always does: it changes no count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class MissedShare(NamedTuple):
    """A class, and the mean share of it that may be missed in a case."""

    class_name: str
    share: float


@dataclass(frozen=True)
class ReportOptions:
    """What is read from the counts of an Evaluation if the job asks for it.

    ordered: whether the classes have an order, that of their table. coverages: wanted ones of prediction sets. missed:
    wanted mean missed shares of classes by case. conventions: other packages whose numbers stand beside ours.
    background: the class that means over the foreground leave out.
    """

    ordered: bool = False
    coverages: tuple[float, ...] = ()
    missed: tuple[MissedShare, ...] = ()
    conventions: tuple[str, ...] = ()
    background: str | None = None

    @property
    def sets(self) -> bool:
        """Whether prediction sets are asked for."""
        return bool(self.coverages or self.missed)


NOTHING_MORE = ReportOptions()
