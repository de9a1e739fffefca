"""Descriptions of clusters in the files of ``cluster/``, checked before anything starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from dask_uncert.errors import InputError
from dask_uncert.io.paths import check_not_special
from dask_uncert.io.validation import Counting, StrictModel, WholeNumber, validated
from dask_uncert.io.yaml_file import read_yaml

ADDRESSES = ("tcp://", "tls://")
MOST_BYTES = 1 << 50
Text = Annotated[str, Field(min_length=1)]


def _bytes(size: Any) -> Any:
    from dask.utils import parse_bytes

    try:
        number = parse_bytes(size) if isinstance(size, int | str) and not isinstance(size, bool) else 0
    except OverflowError:
        number = 0
    except ValueError:
        return size  # refused where the workers start
    if not 1 <= number <= MOST_BYTES:
        raise ValueError("should be a number of bytes, such as '4 GiB', from 1 byte to 1 PiB")
    return size


Memory = Annotated[int | str, BeforeValidator(_bytes)]


Threads = Annotated[WholeNumber, Field(ge=1, le=4096)]


def _running(address: str) -> str:
    if not address.startswith(ADDRESSES):
        raise ValueError("should be an address such as tls://host:8786")
    if not re.search(r":\d+/?$", address):
        raise ValueError("should end with the scheduler's port, such as tcp://host:8786")
    return address


def _bounded(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a batch cluster; those that say how large a job is are checked as elsewhere."""
    kinds: dict[str, Any] = {"cores": Threads, "processes": Threads, "memory": Memory}
    for name, kind in kinds.items():
        if options.get(name) is not None:
            try:
                TypeAdapter(kind, config={"strict": True}).validate_python(options[name])
            except ValidationError as error:
                raise ValueError(f"`{name}` {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    return options


class Local(StrictModel):
    """A cluster on this machine; None leaves the choice to `connect`."""

    kind: Literal["local"] = Field("local", repr=False)
    workers: Counting | None = None
    threads: Threads | None = None
    processes: bool | None = None
    memory_limit: Memory | None = None
    dashboard: bool | Annotated[WholeNumber, Field(ge=1, le=65535)] | None = None


class Address(StrictModel):
    """A running scheduler: its address, and for tls:// the files of certificates, None for dask's configuration."""

    kind: Literal["address"] = Field("address", repr=False)
    address: Annotated[str, AfterValidator(_running)]
    ca_file: Text | None = None
    cert: Text | None = None
    key: Text | None = None


class Batch(StrictModel):
    """Workers that a batch system starts as its jobs.

    kind: of `SYSTEMS`. jobs: their number, or the least with `most_jobs`, which adapts it to the work. wait: seconds
    that the first worker may take to come. tls: whether all speak TLS with keys made for this cluster. options: of
    dask-jobqueue's class, under their own names.
    """

    kind: Literal["slurm", "pbs", "sge", "lsf"]
    jobs: Counting | None = None
    most_jobs: Counting | None = None
    wait: Counting | None = None
    tls: bool | None = None
    options: Annotated[dict[str, Any], AfterValidator(_bounded)] = Field({})


class Mpi(StrictModel):
    """Workers that the launcher of an allocation starts, one for each rank.

    launcher: a command such as ``[mpirun, -n, 4]``. threads, memory_limit: of each worker. interface: the network
    between the nodes. wait: seconds that the first worker may take to come. tls: whether all speak TLS with keys made
    for this run; shared_folder: of the keys, readable on all nodes. log_directory: for what the launcher and
    the workers print. local_directory: a fast disk of each node, for what does not fit in memory.
    """

    kind: Literal["mpi"] = Field("mpi", repr=False)
    launcher: Text | Annotated[list[Text | WholeNumber], Field(min_length=1)] | None = None
    threads: Threads | None = None
    memory_limit: Memory | None = None
    interface: Text | None = None
    wait: Counting | None = None
    tls: bool | None = None
    shared_folder: Text | None = None
    log_directory: Text | None = None
    local_directory: Text | None = None


Described = Local | Address | Batch | Mpi
SYSTEMS = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster"}
"""By the key `kind`: the class of dask-jobqueue."""
KINDS: dict[str, type[Described]]
KINDS = {"local": Local, "address": Address, **dict.fromkeys(SYSTEMS, Batch), "mpi": Mpi}


def read_cluster(cluster: str | Path) -> Described:
    """Return the cluster that ``"local"``, an address or a YAML file describes.

    >>> read_cluster("local")
    Local(workers=None, threads=None, processes=None, memory_limit=None, dashboard=None)

    Raises InputError for a missing file, one that is not YAML, and a key or an address that is unknown or wrong.
    """
    if cluster == "local":
        return Local()
    if str(cluster).startswith(ADDRESSES):
        return validated(Address, {"address": str(cluster)}, "cluster: ")
    path = Path(cluster).expanduser()
    check_not_special(path, "cluster file ")
    if not path.is_file():
        raise InputError(
            f"cluster {str(cluster)!r} is neither 'local' nor an address such as tcp://host:8786, "
            f"and there is no file {path.absolute()}"
        )
    options = read_yaml(path, "cluster file")
    kind = options.get("kind") if isinstance(options, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"cluster file {path} must say `kind`, one of {', '.join(KINDS)}; found {kind!r}")
    described = validated(KINDS[kind], options, f"cluster file {path}: ")
    if not isinstance(described, Address):
        return described
    files = described.model_dump(include={"ca_file", "cert", "key"}, exclude_none=True)
    return described.model_copy(update={name: str(path.parent / file) for name, file in files.items()})
