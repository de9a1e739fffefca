"""Exceptions a caller may want to catch."""


class InputError(ValueError):
    """The request or its input is wrong; nothing was written. The message says what, where and what to do."""


class ClusterError(RuntimeError):
    """A cluster could not be started or reached; the message says which one and what to do."""


class OutputError(RuntimeError):
    """The output could not be written: its disk is full, or not to be written to; earlier results stand."""


class LostPixelsError(RuntimeError):
    """Pixels counted and left out do not add up to the grid; nothing was written."""


class UnusableBlockError(InputError):
    """A block holds input that cannot be used; `what` is "codes" or the name of an input."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(what, message)
        self.what, self.message = what, message

    def __str__(self) -> str:
        return self.message
