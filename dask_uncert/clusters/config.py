"""What a file of ``cluster/`` says: the words that describe a cluster, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from dask_uncert.errors import InputError

ADDRESSES = ("tcp://", "tls://")


@dataclass(frozen=True)
class Local:
    """A cluster on this machine; None leaves the choice to `connect`."""

    workers: int | None = None
    threads: int | None = None
    processes: bool | None = None
    memory_limit: int | str | None = None
    dashboard: bool | int | None = None


@dataclass(frozen=True)
class Address:
    """A running scheduler: its address, and for tls:// the files of certificates, None for dask's configuration."""

    address: str | None = None
    ca_file: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class Batch:
    """Workers that a batch system starts as its jobs.

    system: of `SYSTEMS`. jobs: how many, or at least so many up to `most_jobs`, as there is work. wait: seconds that
    the first worker may take to come. tls: whether all speak TLS with keys made for this cluster. options: of
    dask-jobqueue's class, under their own names.
    """

    system: str = ""
    jobs: int | None = None
    most_jobs: int | None = None
    wait: int | None = None
    tls: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mpi:
    """Workers that the launcher of an allocation starts, one a rank.

    launcher: its words, such as ``[mpirun, -n, 4]``. threads, memory_limit: of each worker. interface: the network
    between the nodes. wait: seconds that the first worker may take to come. tls: whether all speak TLS with keys made
    for this run; shared_folder: where the keys lie, for all nodes to read. log_directory: where what the launcher and
    the workers print is kept. local_directory: a fast disk of each node, for what does not fit in memory.
    """

    launcher: str | Sequence[str | int] | None = None
    threads: int | None = None
    memory_limit: int | str | None = None
    interface: str | None = None
    wait: int | None = None
    tls: bool | None = None
    shared_folder: str | None = None
    log_directory: str | None = None
    local_directory: str | None = None


Described = Local | Address | Batch | Mpi
AnyDescribed = TypeVar("AnyDescribed", bound=Described)
SYSTEMS = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster"}
"""By the word `kind`: the class of dask-jobqueue."""
KINDS: dict[str, Described] = {
    "local": Local(),
    "address": Address(),
    **{system: Batch(system) for system in SYSTEMS},
    "mpi": Mpi(),
}


def read_cluster(cluster: str | Path) -> Described:
    """What ``"local"`` or a YAML file describes.

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
    kind = words.pop("kind", None) if isinstance(words, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"cluster file {path} must say `kind`, one of {', '.join(KINDS)}; found {kind!r}")
    found = with_words(KINDS[kind], words, f"cluster file {path}")
    if isinstance(found, Address):
        if not found.address:
            raise InputError(f"cluster file {path} must say `address`, such as tls://host:8786")
        beside = {name: getattr(found, name) for name in ("ca_file", "cert", "key")}
        return replace(
            found, **{name: str(path.parent / one) for name, one in beside.items() if one is not None}
        )
    return found


def with_words(described: AnyDescribed, words: Mapping[str, Any], where: str) -> AnyDescribed:
    """What is described, with some words changed; `where` is what an error names.

    >>> with_words(Local(workers=2), {"threads": 4}, "here").workers
    2
    """
    known = [one.name for one in fields(described) if one.name != "system"]
    unknown = [str(word) for word in words if word not in known]
    if unknown:
        raise InputError(f"{where} does not know {', '.join(unknown)}; known words: {', '.join(known)}")
    for name, value in words.items():
        truth = isinstance(value, bool)
        above = isinstance(value, int) and not truth and value > 0
        text = isinstance(value, str) and bool(value)
        named = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
        listed = isinstance(value, list) and bool(value) and isinstance(value[0], str)
        listed = listed and all(isinstance(one, str | int) and not isinstance(one, bool) for one in value)
        right, wanted = {
            "processes": (truth, "true or false"),
            "tls": (truth, "true or false"),
            "memory_limit": (above or isinstance(value, str), "a number of bytes such as '4 GiB'"),
            "dashboard": (truth or (above and value < 65536), "true, false or a port"),
            "options": (named, "words and values for dask-jobqueue"),
            "address": (text and value.startswith(ADDRESSES), "such as tls://host:8786"),
            **dict.fromkeys(("ca_file", "cert", "key"), (text, "a file")),
            "launcher": (text or listed, "a command such as [mpirun, -n, 4]"),
            "interface": (text, "a network's name, such as ib0"),
            **dict.fromkeys(("shared_folder", "log_directory", "local_directory"), (text, "a folder")),
        }.get(name, (above, "a whole number above 0"))
        if value is not None and not right:
            raise InputError(f"{name} of {where} must be {wanted}, found {value!r}")
    return replace(described, **words)
