"""A real Grid Engine on this machine: Debian's packages, its daemons started by hand as root.

Grid Engine lives in one folder of the machine, so what is configured stays there, and is configured once.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PLACE = Path("/var/lib/gridengine/default/common")
SPOOL = Path("/var/spool/gridengine")
PROGRAMS = ("root", "sge_qmaster", "sge_execd", "qconf", "qsub")
NONE = "load_scaling complex_values user_lists xuser_lists projects xprojects usage_scaling report_variables"
PARALLEL = """pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args /bin/true
stop_proc_args /bin/true
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""
QUEUE = {
    "qname": "all.q", "hostlist": "@allhosts", "seq_no": "0", "load_thresholds": "NONE", "suspend_thresholds": "NONE",
    "nsuspend": "1", "suspend_interval": "00:05:00", "priority": "0", "min_cpu_interval": "00:00:05",
    "processors": "UNDEFINED", "qtype": "BATCH INTERACTIVE", "ckpt_list": "NONE", "pe_list": "smp", "rerun": "FALSE",
    "slots": "8", "tmpdir": "/tmp", "shell": "/bin/bash", "prolog": "NONE", "epilog": "NONE",
    "shell_start_mode": "unix_behavior", "starter_method": "NONE", "suspend_method": "NONE", "resume_method": "NONE",
    "terminate_method": "NONE", "notify": "00:00:60", "owner_list": "NONE", "user_lists": "NONE", "xuser_lists": "NONE",
    "subordinate_list": "NONE", "complex_values": "NONE", "projects": "NONE", "xprojects": "NONE", "calendar": "NONE",
    "initial_state": "default",
    **{f"{kind}_{what}": "INFINITY" for what in ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem") for kind in "sh"},
}  # fmt: skip


@contextmanager
def grid_engine() -> Iterator[dict[str, str]]:
    """Daemons that are up inside of the `with`; gives the variables that commands need."""
    host = os.uname().nodename
    variables = {"SGE_ROOT": "/var/lib/gridengine", "SGE_CELL": "default"}
    environment = {**os.environ, **variables}

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    def until(true: Callable[[], bool]) -> None:
        for _ in range(100):
            if true():
                return
            time.sleep(0.2)
        raise RuntimeError("Grid Engine did not come up")

    (PLACE / "act_qmaster").write_text(f"{host}\n")
    (PLACE / "host_aliases").write_text(f"{host} localhost\n")  # else it denies access: 127.0.0.1 is two names
    with tempfile.TemporaryDirectory() as made:

        def put(option: str, text: str, name: str = "said") -> None:
            Path(made, name).write_text(text)
            subprocess.run(["qconf", option, name], env=environment, cwd=made, capture_output=True, check=False)

        for place in SPOOL.glob("*/**/*.pid"):  # of daemons that are long gone
            place.unlink()
        try:
            ask("sge_qmaster")
            until(lambda: ask("qconf", "-sh").returncode == 0)
            ask("qconf", "-ah", host)
            ask("qconf", "-as", host)
            put("-Ae", "\n".join([f"hostname {host}", *(f"{word} NONE" for word in NONE.split()), ""]))
            put("-Ahgrp", f"group_name @allhosts\nhostlist {host}\n")
            put("-Ap", PARALLEL)
            put("-Aq", "".join(f"{word} {value}\n" for word, value in QUEUE.items()))
            often = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
            put("-Msconf", changed(ask("qconf", "-ssconf").stdout, often))
            root = {"min_uid": "0", "min_gid": "0", "execd_params": "ENABLE_ADDGRP_KILL=TRUE"}
            put("-Mconf", changed(ask("qconf", "-sconf", "global").stdout, root), "global")
            ask("sge_execd")
            until(lambda: "all.q@" in (said := ask("qstat", "-f").stdout) and not re.search(r" au\b|-NA-", said))
            yield variables
        finally:
            ask("qdel", "-f", "-u", "root")
            numbers = [int(place.read_text()) for place in SPOOL.glob("*/**/*.pid")]
            for sign in (signal.SIGTERM, signal.SIGKILL):
                for number in numbers:
                    with suppress(ProcessLookupError):
                        os.kill(number, sign)
                end = time.monotonic() + 10
                while any(map(is_alive, numbers)) and time.monotonic() < end:
                    time.sleep(0.1)


def is_alive(number: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


def changed(text: str, words: dict[str, str]) -> str:
    """Lines of `word value` with some values changed."""
    for word, value in words.items():
        text = re.sub(rf"^{word}\s.*$", f"{word} {value}", text, flags=re.MULTILINE)
    return text
