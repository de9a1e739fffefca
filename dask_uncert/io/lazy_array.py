"""A stored array in another guise."""

from __future__ import annotations

from typing import Any


class Wrapped:
    """Wraps an array that is sliced; what a guise does not say itself, such as address and fingerprint, is the array's."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        """What else the array says of itself."""
        if name.startswith("_") or name == "data":
            raise AttributeError(name)
        return getattr(self.data, name)

    def __repr__(self) -> str:
        return repr(self.data)
