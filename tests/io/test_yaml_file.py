"""YAML that people write: what it means, and refusals that name the line."""

from __future__ import annotations

import time

import pytest

import dask_uncert as du
from dask_uncert.clusters.config import read_cluster
from dask_uncert.errors import InputError
from dask_uncert.io.yaml_file import MOST_BYTES, parse_yaml, read_yaml

BOMB = "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
REFUSED = {
    BOMB: "line 5: the aliases up to here stand for more than 20000 values",
    "a: 1\nb: &b [*b]\n": "line 2: an alias inside of what it stands for",
    "a:\n  " + "[" * 5000: "line 2: nested more than 50 deep",
    "a: 1\nb:\n  c: 1\n  c: 2\n": "line 4: the key 'c' is given twice",
    "8: a\n010: b\n10: c\n": "line 3: the key 10 is given twice",
    "a: 1\n[b]: 2\n": "line 2: a key must be a text or a number",
    "a: 1\nb: 2020-13-45\n": "line 2: '2020-13-45' is not what its form or tag says",
    "a: 1\nb: \x07\n": "line 2: unprintable character #x0007",
    "a: 1\nb: {<<: 3}\n": "line 2: `<<` merges a mapping",
    "a: 1\nb: [\n": "line 3: ",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=range(len(REFUSED)))
def test_a_file_that_cannot_be_used_is_refused_at_once_naming_the_line(tmp_path, text, message):
    file = tmp_path / "file.yaml"
    file.write_text(text)
    for read in (du.plan, read_cluster):
        start = time.monotonic()
        with pytest.raises(InputError) as caught:
            read(file)
        assert time.monotonic() - start < 2
        assert f"{file} is not valid YAML: {message}" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_bytes(b"a" * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="larger than 512 KiB"):
        read_yaml(file, "job file")


def test_mappings_are_merged_and_numbers_are_what_they_look_like():
    text = "base: &b {x: 1, y: 2}\nmore: &m {<<: *b, y: 3}\nall: {<<: [*m, *b], z: 4}"
    assert parse_yaml(text)["all"] == {"x": 1, "y": 3, "z": 4}
    assert parse_yaml("[010, -020, 0x1F, 0, 1_000, 12:00:00]") == [10, -20, 31, 0, 1000, "12:00:00"]
