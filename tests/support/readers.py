"""Helpers of tests of file readers."""

import pytest

from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored


def refused(match, store, array="", name="mask", dims=None):
    """Opening an input is refused in one paragraph with this message."""
    with pytest.raises(InputError, match=match) as caught:
        open_stored(str(store), array, name, dims)
    assert "\n" not in str(caught.value)


def contents(folder):
    """The bytes of every file below a folder, by its path in it."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
