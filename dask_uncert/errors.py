"""Exceptions a caller may want to catch, and phrases that many messages share."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, cast

T = TypeVar("T")
LONGEST_MESSAGE = 4000  # characters
MOST_KNOWN = 24  # names that a message lists
USER = re.compile(r"(?<!abfs)(?<!abfss)://[^/\s]*@")
QUERY = re.compile(r"""(?<=\S)\?\S+?(?=["'`>]?[.,;:]?(?:\s|$))""")


def without_secrets(value: T) -> T:
    """Return a text, or plain data that holds texts, without the user parts and query strings of addresses.

    They may hold passwords, tokens and signatures. In abfs:// addresses the user part is the container, and stays.

    >>> without_secrets("cannot read 'https://me@host/p.nii?sig=XYZ': timeout")
    "cannot read 'https://host/p.nii': timeout"
    >>> without_secrets({"store": "abfs://data@account/p.zarr", "dims": ["y", "x"]})
    {'store': 'abfs://data@account/p.zarr', 'dims': ['y', 'x']}
    """
    clean: Any = value
    if isinstance(value, str):
        clean = QUERY.sub("", USER.sub("://", value)) if "://" in value else value
    elif isinstance(value, Mapping):
        clean = {without_secrets(key): without_secrets(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        clean = [without_secrets(item) for item in value]
    return cast(T, clean)


def shortened(text: Any) -> Any:
    """Return a text without most of its middle if it is far longer than a message; anything else unchanged."""
    long = isinstance(text, str) and len(text) > LONGEST_MESSAGE
    return f"{text[: LONGEST_MESSAGE // 2]} ... {text[-LONGEST_MESSAGE // 2 :]}" if long else text


class _ErrorWithoutSecrets(Exception):
    def __init__(self, *args: Any) -> None:
        super().__init__(*(shortened(text) for text in without_secrets(args)))


class InputWarning(UserWarning):
    """An input can be used, but is odd."""


class InputError(_ErrorWithoutSecrets, ValueError):
    """The request or its input is wrong; nothing was written. The message says what, where and what to do."""


class ClusterError(_ErrorWithoutSecrets, RuntimeError):
    """A cluster could not be started or reached; the message says which one and what to do."""


class OutputError(_ErrorWithoutSecrets, RuntimeError):
    """The output could not be written, e.g. because the disk is full; earlier results are kept."""


class LostPixelsError(RuntimeError):
    """The pixels counted and left out do not add up to the grid; nothing was written."""


class UnusableBlockError(InputError):
    """A block holds input that cannot be used; `problem` is "codes" or the name of an input."""

    def __init__(self, problem: str, message: str) -> None:
        super().__init__(problem, message)
        self.problem, self.message = problem, without_secrets(message)

    def __str__(self) -> str:
        return self.message


def one_line(text: object, longest: int | None = None) -> str:
    """Return a text, such as another library's message, without secrets on one line of at most `longest` characters.

    >>> one_line("cannot read\\n   the file")
    'cannot read the file'
    """
    return " ".join(without_secrets(str(text)).split())[:longest] or "no message"


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


def suggestion(word: object, known: Iterable[str], names: str = "Known") -> str:
    """Return the sentence that names the nearest right spelling, or else what is known.

    >>> suggestion("Gini", ["gini", "entropy"])
    'Did you mean `gini`?'
    >>> suggestion("zebra", ["gini", "entropy"], "Known measures")
    'Known measures: gini, entropy.'
    """
    spellings = {str(name).casefold(): str(name) for name in known}
    near = get_close_matches(str(word).casefold(), spellings, 1)
    if near:
        return f"Did you mean `{spellings[near[0]]}`?"
    return f"{names}: {listed(spellings.values(), MOST_KNOWN) or 'none'}."


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun in the right form.

    >>> plural(1, "pixel"), plural(2, "pixel"), plural(2, "class", "classes")
    ('1 pixel', '2 pixels', '2 classes')
    """
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"
