"""What a file of ``cluster/`` says: the words that describe a cluster, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from dask_uncert.errors import InputError


@dataclass(frozen=True)
class Local:
    """A cluster on this machine; None leaves the choice to `connect`."""

    workers: int | None = None
    threads: int | None = None
    processes: bool | None = None
    memory_limit: int | str | None = None
    dashboard: bool | int | None = None


def read_cluster(cluster: str | Path) -> Local:
    """The local cluster that ``"local"`` or a YAML file stands for.

    >>> read_cluster("local")
    Local(workers=None, threads=None, processes=None, memory_limit=None, dashboard=None)

    Raises InputError for a missing file, for one that is not YAML, and for a word that is not known.
    """
    if cluster == "local":
        return Local()
    path = Path(cluster).expanduser()
    if not path.is_file():
        raise InputError(
            f"cluster {str(cluster)!r} is neither 'local' nor an address such as tcp://host:8786, "
            f"and there is no file {path.absolute()}"
        )
    try:
        words = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"cluster file {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(words, dict) or words.pop("kind", None) != "local":
        raise InputError(f"cluster file {path} must say 'kind: local', the only kind so far")
    return with_words(Local(), words, f"cluster file {path}")


def with_words(local: Local, words: Mapping[str, Any], where: str) -> Local:
    """`local` with some words changed; `where` is what an error names.

    >>> with_words(Local(workers=2), {"threads": 4}, "here").workers
    2
    """
    known = [field.name for field in fields(Local)]
    unknown = [str(word) for word in words if word not in known]
    if unknown:
        raise InputError(f"{where} does not know {', '.join(unknown)}; known words: {', '.join(known)}")
    for name, value in words.items():
        truth = isinstance(value, bool)
        above = isinstance(value, int) and not truth and value > 0
        right, wanted = {
            "workers": (above, "a whole number above 0"),
            "threads": (above, "a whole number above 0"),
            "processes": (truth, "true or false"),
            "memory_limit": (above or isinstance(value, str), "a number of bytes such as '4 GiB'"),
            "dashboard": (truth or (above and value < 65536), "true, false or a port"),
        }[name]
        if value is not None and not right:
            raise InputError(f"{name} of {where} must be {wanted}, found {value!r}")
    return replace(local, **words)
