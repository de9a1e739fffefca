"""Digests by which data that we wrote are known to be unchanged when they are read again.

Every chunk has the checksum of zstd, which is verified whenever any part of the chunk is decoded (that of the codec
crc32c is not, if zarrs decodes a part). A checksum does not tell whether the chunk belongs to its array, or whether the
shape, dtype and attributes are those that were written. So the attributes of a summary hold the digest of every array
in it: its metadata and chunks together. A map has the digest of its metadata in a file beside them, where no copy by
other tools takes it along. It covers what we wrote: attributes that a user adds to a map are the user's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from zarr.codecs import ZstdCodec

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.paths import AnyPath, as_path, list_files, write_atomic

CHECKED = ZstdCodec(level=0, checksum=True)
"""zarr's default compression, with a checksum: 4 bytes more for each chunk."""
SEAL = "digest.json"
"""The file with the digest of a map's metadata."""
STRUCTURE = ("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
             "dimension_names")  # fmt: skip
"""The metadata by which the numbers of an array are read."""
OWN_DIGEST = "digest"
DIGESTS = "digests"
"""The attribute of a summary with the digest of every array and group in it, by path."""
NODE = "zarr.json"
Json = dict[str, Any]


def digest_of(content: bytes | Mapping[str, Any]) -> str:
    """Return the digest of bytes, or of plain data, whatever the order of its keys; 32 hexadecimal digits."""
    if not isinstance(content, bytes):
        content = json.dumps(content, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def damaged(path: object, reason: str = "its digest differs") -> InputError:
    """Return the error to raise for something that we wrote and that has changed since."""
    return InputError(
        f"{path} is not as dask-uncert wrote it ({reason}): it is damaged, or was changed. Compute it again, or copy it "
        f"again."
    )


def sealed(content: Mapping[str, Any], key: str) -> Json:
    """Return plain data with a digest of themselves under this key."""
    bare = {name: value for name, value in content.items() if name != key}
    return {**bare, key: digest_of(bare)}


def check_sealed(content: Mapping[str, Any], key: str, path: object) -> None:
    """Raise InputError, naming the path, unless plain data are as `sealed` returned them."""
    if not isinstance(content, Mapping) or sealed(content, key) != content:
        raise damaged(path)


def seal(array: AnyPath) -> None:
    """Put a file with the digest of an array's metadata beside them."""
    content = json.loads((array / NODE).read_bytes())
    names = sorted(content.get("attributes", {}))
    write_atomic(array / SEAL, json.dumps({"attributes": names, "digest": _metadata_digest(content, names)}).encode())


def check_seal(array: AnyPath) -> None:
    """Raise InputError, naming it, unless what `seal` saw of an array's metadata is unchanged."""
    try:
        content, seen = (json.loads((array / name).read_bytes()) for name in (NODE, SEAL))
        same = _metadata_digest(content, seen["attributes"]) == seen["digest"]
    except FileNotFoundError as error:
        raise damaged(array, f"it lacks {PurePosixPath(str(error.filename or error)).name}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(array, exception_text(error)) from error
    if not same:
        raise damaged(array / NODE, "its shape, codecs or attributes differ")


def _metadata_digest(content: Json, attributes: Iterable[str]) -> str:
    own = content.get("attributes", {})
    return digest_of(
        {**{key: content.get(key) for key in STRUCTURE}, "attributes": {key: own[key] for key in attributes}}
    )


def seal_summary(store: str) -> None:
    """Put the digest of every array and group of a summary into its attributes, and then that of its metadata."""
    folder = as_path(store)
    files = _files(folder)
    digests = {node: _node_digest(folder / node, files[node]) for node in sorted(files) if node}
    content = json.loads((folder / NODE).read_bytes())
    content["attributes"] = {**content.get("attributes", {}), DIGESTS: digests}
    write_atomic(folder / NODE, json.dumps(_root_sealed(content), indent=2).encode())


def _root_sealed(content: Json) -> Json:
    """Return the metadata of a summary with a digest of themselves among its attributes."""
    bare = {**content, "attributes": {k: v for k, v in content.get("attributes", {}).items() if k != OWN_DIGEST}}
    return {**bare, "attributes": {**bare["attributes"], OWN_DIGEST: digest_of(bare)}}


class SealedSummary:
    """What a summary says of the digests of its parts; InputError unless its metadata are as they were written."""

    def __init__(self, store: str) -> None:
        path = as_path(store) / NODE
        try:
            content = json.loads(path.read_bytes())
            same = _root_sealed(content) == content
        except (OSError, ValueError, AttributeError) as error:
            raise damaged(path, exception_text(error)) from error
        if not same:
            raise damaged(path)
        self.store = store
        self.digests: dict[str, str] = content["attributes"][DIGESTS]

    def check(self, prefix: str) -> None:
        """Raise InputError, naming the part, unless all below the group `prefix` is as it was written."""
        folder = as_path(self.store)
        files = {f"{prefix}/{node}".rstrip("/"): names for node, names in _files(folder / prefix).items()}
        expected = {node for node in self.digests if node == prefix or node.startswith(f"{prefix}/")}
        for node in sorted(expected | files.keys()):
            if node not in files or node not in expected:
                raise damaged(f"{self.store}/{node}", "it is missing" if node in expected else "it was not there")
            self._check(folder / node, node, files[node])

    def check_group(self, node: str) -> None:
        """Raise InputError, naming it, unless the metadata of a group are as they were written."""
        self._check(as_path(self.store) / node, node, [NODE])

    def check_array(self, node: str) -> None:
        """Raise InputError, naming it, unless an array is as it was written."""
        folder = as_path(self.store) / node
        self._check(folder, node, list_files(folder))

    def _check(self, folder: AnyPath, node: str, names: list[str]) -> None:
        try:
            same = _node_digest(folder, names) == self.digests.get(node)
        except OSError as error:
            raise damaged(f"{self.store}/{node}", exception_text(error)) from error
        if not same:
            raise damaged(f"{self.store}/{node}")


def _files(folder: AnyPath) -> dict[str, list[str]]:
    """Return the files of each array and group below a folder, relative to it, by its path; "" is the folder."""
    names = list_files(folder)
    nodes = {name.removesuffix(NODE).rstrip("/") for name in names if name == NODE or name.endswith(f"/{NODE}")}
    files: dict[str, list[str]] = {node: [] for node in nodes}
    for name in names:
        node = next((parent for parent in _above(name) if parent in nodes), None)
        if node is not None:
            files[node].append(name.removeprefix(f"{node}/") if node else name)
    return files


def _above(name: str) -> Iterator[str]:
    while name:
        name = name.rpartition("/")[0]
        yield name


def _node_digest(folder: AnyPath, names: list[str]) -> str:
    """Return the digest of the metadata and chunks of an array, which are these files, or of a group's metadata."""
    state = hashlib.blake2b(digest_size=16)
    for name in sorted(names):
        content = (folder / name).read_bytes()
        state.update(f"{name} {len(content)} ".encode())
        state.update(content)
    return state.hexdigest()
