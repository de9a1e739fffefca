"""A real SLURM on this machine: its daemons, started by hand as root, in a folder of their own."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("root", "slurmctld", "slurmd", "munged", "sbatch")
SETTINGS = """
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={other}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
KillWait=5
MinJobAge=60
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Daemons that are up inside of the `with`; gives the environment that commands need."""
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(parents=True)
    for one in (folder, folder / "munge"):
        one.chmod(0o755)
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    words = {"host": os.uname().nodename, "folder": folder, "port": ports[0], "other": ports[1]}
    conf, key = folder / "slurm.conf", folder / "munge" / "key"
    conf.write_text(SETTINGS.format(**words))
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    try:
        munge = {"key-file": key, "socket": folder / "munge" / "socket", "pid-file": folder / "munged.pid"}
        munge |= {"log-file": folder / "munge" / "log", "seed-file": folder / "munge" / "seed"}
        for command in (
            ["munged", *(f"--{k}={v}" for k, v in munge.items())],
            ["slurmctld", "-f", conf],
            ["slurmd", "-f", conf],
        ):
            subprocess.run(list(map(str, command)), check=True, env=environment)
        for _ in range(100):
            state = subprocess.run(
                ["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True, check=False
            )
            if state.stdout.strip() == "idle":
                break
            time.sleep(0.2)
        else:
            raise RuntimeError(f"SLURM did not come up: {state.stdout}{state.stderr}")
        yield environment
    finally:
        subprocess.run(["scancel", "-u", "root"], env=environment, check=False, capture_output=True)
        for name in ("slurmd.pid", "slurmctld.pid", "munged.pid"):
            with suppress(OSError, ValueError):
                os.kill(int((folder / name).read_text()), signal.SIGTERM)
