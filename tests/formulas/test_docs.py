"""Docstrings of public functions and classes are complete, also where they share sections."""

import dataclasses
import inspect
import re

import pytest

import dask_uncert as du

FUNCTIONS = {name: getattr(du, name) for name in du.__all__ if inspect.isfunction(getattr(du, name))}
CLASSES = {name: getattr(du, name) for name in du.__all__ if inspect.isclass(getattr(du, name))}


def methods(cls):
    """Public methods and properties, also inherited ones."""
    inherited = {name: value for base in reversed(cls.__mro__[:-1]) for name, value in vars(base).items()}
    ours = {name: getattr(value, "__func__", value) for name, value in inherited.items() if not name.startswith("_")}
    return {name: value for name, value in ours.items() if inspect.isfunction(value) or isinstance(value, property)}


METHODS = {
    f"{name}.{method}": value
    for name, cls in CLASSES.items()
    if not issubclass(cls, Exception)
    for method, value in methods(cls).items()
}


def sections(documented):
    """The text of each section, by its title; the first is the summary."""
    text = inspect.getdoc(documented) or ""
    assert "\n{" not in text
    parts = re.split(r"^(\w[\w ]*)\n-+$", text, flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def assert_complete(documented, found):
    signature = inspect.signature(documented)
    parameters = {*signature.parameters} - {"self", "cls"}
    assert re.search(r"\S\.", found[""])
    assert ("Parameters" in found) == bool(parameters)
    assert signature.return_annotation == "None" or {"Returns", "Yields"} & {*found}
    words = {*re.split(r"[\s,:*]+", found.get("Parameters", ""))}
    assert not parameters - {"options"} - words


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_have_every_section(name):
    found = sections(FUNCTIONS[name])
    assert_complete(FUNCTIONS[name], found)
    assert ">>>" in found["Examples"]


@pytest.mark.parametrize("name", CLASSES)
def test_public_classes_name_their_attributes_and_show_an_example(name):
    found = sections(CLASSES[name])
    assert re.search(r"\S\.", found[""])
    if issubclass(CLASSES[name], Exception | Warning):
        return
    assert ">>>" in found["Examples"]
    fields = (
        [field.name for field in dataclasses.fields(CLASSES[name])] if dataclasses.is_dataclass(CLASSES[name]) else []
    )
    words = {*re.split(r"[\s,:`]+", found.get("Attributes", found.get("Parameters", "")))}
    assert words
    assert not {*fields} - words


@pytest.mark.parametrize("name", METHODS)
def test_public_methods_have_every_section(name):
    found = sections(METHODS[name])
    if isinstance(METHODS[name], property):
        assert re.search(r"\S\.", found[""])
    else:
        assert_complete(METHODS[name], found)
