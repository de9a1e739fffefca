"""Exceptions a caller may want to catch."""


class InputError(ValueError):
    """The request or its input is wrong; nothing was written. The message says what, where and what to do."""


class UnusableBlockError(InputError):
    """A block holds input that cannot be used; `what` is "codes" or the name of an input."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(what, message)
        self.what, self.message = what, message

    def __str__(self) -> str:
        return self.message
