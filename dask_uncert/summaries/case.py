"""A case of a cohort: who it is, and how cases are ordered."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dask_uncert.errors import InputError, listed


def composed(name: str) -> str:
    """Return a name in Unicode's composed form (NFC): one name that is encoded in two ways is one name.

    >>> composed("Jose\\u0301") == "Jos\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", name)


@dataclass(frozen=True)
class Case:
    """One case of a cohort: a patient, or one of several visits. Names are kept in Unicode's composed form (NFC).

    Attributes
    ----------
    patient : str
        Name of the patient.
    visit : str
        Name of the visit, empty where a patient has one only.
    groups : tuple of (str, str)
        Column and value of each grouping column.
    fingerprint : str
        Fingerprint of the case's inputs, job and version.

    Examples
    --------
    >>> Case("P1", "2024-05").name
    'P1/2024-05'
    """

    patient: str
    visit: str = ""
    groups: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "patient", composed(self.patient))
        object.__setattr__(self, "visit", composed(self.visit))
        object.__setattr__(self, "groups", tuple((composed(c), composed(value)) for c, value in self.groups))

    @property
    def name(self) -> str:
        """Patient, and the visit where there are several."""
        return f"{self.patient}/{self.visit}" if self.visit else self.patient


def sorted_cases(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return the cases sorted by name; InputError where two have the same."""
    ordered = tuple(sorted(cases, key=lambda case: case.name))
    twice = [case.name for case, other in pairwise(ordered) if case.name == other.name]
    if twice:
        raise InputError(f"{listed(twice, 5)} would count twice; each case counts once.")
    return ordered


def positions(known: Sequence[str], names: Iterable[str]) -> list[int]:
    """Return the positions of names among those known; InputError for a name that is not there."""
    numbers = {name: i for i, name in enumerate(known)}
    wanted = [composed(name) for name in ([names] if isinstance(names, str) else names)]
    missing = [name for name in wanted if name not in numbers]
    if missing:
        raise InputError(f"there is no case {listed(missing, 5)}; there are {listed(known, 5)}.")
    return [numbers[name] for name in wanted]
