"""Docstrings of public functions are complete, also where they share sections."""

import inspect

import pytest

import dask_uncert as du


@pytest.mark.parametrize("name", [name for name in du.__all__ if inspect.isfunction(getattr(du, name))])
def test_public_functions_have_every_section(name):
    signature = inspect.signature(getattr(du, name))
    text = inspect.getdoc(getattr(du, name)).replace("\nYields\n------\n", "\nReturns\n-------\n")
    wanted = {
        "Parameters": signature.parameters,
        "Returns": signature.return_annotation != "None",
        "Examples": True,
    }
    assert not [title for title in wanted if wanted[title] and f"\n{title}\n{'-' * len(title)}\n" not in text]
    assert not {*signature.parameters} - {"options"} - {*text.replace(",", " ").replace(":", " ").split()}
    assert "\n{" not in text
