"""Exceptions a caller may want to catch, and phrases that many messages share."""

from collections.abc import Iterable


class InputError(ValueError):
    """The request or its input is wrong; nothing was written. The message says what, where and what to do."""


class ClusterError(RuntimeError):
    """A cluster could not be started or reached; the message says which one and what to do."""


class OutputError(RuntimeError):
    """The output could not be written, e.g. because the disk is full; earlier results are kept."""


class LostPixelsError(RuntimeError):
    """The pixels counted and left out do not add up to the grid; nothing was written."""


class UnusableBlockError(InputError):
    """A block holds input that cannot be used; `problem` is "codes" or the name of an input."""

    def __init__(self, problem: str, message: str) -> None:
        super().__init__(problem, message)
        self.problem, self.message = problem, message

    def __str__(self) -> str:
        return self.message


def one_line(text: object, longest: int | None = None) -> str:
    """Return a text, such as another library's message, on one line of at most `longest` characters.

    >>> one_line("cannot read\\n   the file")
    'cannot read the file'
    """
    return " ".join(str(text).split())[:longest] or "no message"


def exception_text(error: BaseException, longest: int | None = 200) -> str:
    """Return the type and message of an exception on one line.

    >>> exception_text(ValueError("no such\\n code"))
    'ValueError: no such code'
    """
    return f"{type(error).__name__}: {one_line(error, longest)}"


def listed(items: Iterable[object], most: int, separator: str = ", ") -> str:
    """Return the first `most` items and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    texts = [str(item) for item in items]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return separator.join(texts[:most]) + more


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun in the right form.

    >>> plural(1, "pixel"), plural(2, "pixel"), plural(2, "class", "classes")
    ('1 pixel', '2 pixels', '2 classes')
    """
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"
