"""Reading the YAML that people write: job files, cluster files and values of the command line.

Safe YAML with fewer surprises: a key given twice is an error, numbers written 010 are decimal, 1:30 is text, and text
that would be nested too deep, or grow without bound by its aliases, is refused before it is read on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from dask_uncert.errors import InputError, one_line
from dask_uncert.io.paths import check_not_special

MOST_BYTES = 1 << 19  # which take some 5 s to parse
DEEPEST = 50
MOST_ALIASED = 20_000
"""Values that the aliases of a file may stand for, all together."""
MERGE = "tag:yaml.org,2002:merge"


def read_yaml(path: Path, what: str) -> Any:
    """Return the content of a YAML file; what: the kind of file, for messages. Raises InputError."""
    try:
        check_not_special(path, f"{what} ")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{what} {path} is larger than 512 KiB, so it is hardly one.")
        return parse_yaml(content.decode("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"there is no {what} at {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{what} {path} cannot be read: {one_line(error)}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{what} {path} is not valid YAML: {error}") from None


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text; raise ValueError with the line where it cannot be used.

    >>> parse_yaml("{010: water, 020: forest}")
    {10: 'water', 20: 'forest'}
    >>> parse_yaml("a: 1\\na: 2")
    Traceback (most recent call last):
    ...
    ValueError: line 2: the key 'a' is given twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line, problem = (
            text[: error.position].count("\n"),
            f"unprintable character #x{error.character:04x}",
        )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, problem = mark.line if mark else 0, one_line(error.problem or error.context)
    raise ValueError(f"line {line + 1}: {problem}.")


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.values = self.aliased = 0
        self.sizes: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, unless it is too deep or stands for too many values."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark, is_alias = event.start_mark, isinstance(event, yaml.AliasEvent)
        before, self.depth = self.values, self.depth + 1
        if self.depth > DEEPEST:
            raise _problem(f"nested more than {DEEPEST} deep", mark)
        node: Any = super().compose_node(parent, index)
        self.depth -= 1
        if not is_alias:
            self.values += 1
            self.sizes[id(node)] = self.values - before
            return node
        if id(node) not in self.sizes:
            raise _problem("an alias inside of what it stands for", mark)
        self.values += self.sizes[id(node)]
        self.aliased += self.sizes[id(node)]
        if self.aliased > MOST_ALIASED:
            raise _problem(f"the aliases up to here stand for more than {MOST_ALIASED} values", mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping, unless it has a key twice; keys that are merged into it do not count."""
        node: Any = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = "<<" if key.tag == MERGE else self.construct_object(key, deep=True)
            if isinstance(name, list | dict | set):
                raise _problem("a key must be a text or a number", key.start_mark)
            if name in seen:
                raise _problem(f"the key {name!r} is given twice", key.start_mark)
            seen.add(name)
        return node

    def flatten_mapping(self, node: Any) -> None:
        """Put the keys of merged mappings before a mapping's own, which win; of merged ones, those of the first win."""
        merged: list[Any] = []
        for key, source in node.value:
            if key.tag != MERGE:
                continue
            for mapping in reversed(source.value if isinstance(source, yaml.SequenceNode) else [source]):
                if not isinstance(mapping, yaml.MappingNode):
                    raise _problem("`<<` merges a mapping or a list of mappings", source.start_mark)
                self.flatten_mapping(mapping)
                merged += mapping.value
        node.value = merged + [pair for pair in node.value if pair[0].tag != MERGE]

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Return a node's value; an error in it names the line."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            raise _problem(f"{one_line(node.value, 40)!r} is not what its form or tag says", node.start_mark) from None

    def construct_yaml_int(self, node: Any) -> Any:
        """Return a number written 010 as 10, not 8, and 1:30 as text, not 90."""
        text = str(self.construct_scalar(node))
        if ":" in text:
            return text
        return int(text.replace("_", "")) if re.fullmatch(r"[-+]?0[\d_]+", text) else super().construct_yaml_int(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _problem(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
