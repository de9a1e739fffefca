"""Hosts on this machine: network namespaces with addresses of their own, joined by a switch whose cables can be cut."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

NET = "10.77.0"
HOSTS = {"sched": 10, "w1": 11, "w2": 12, "cli": 20}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """Named hosts of one run; `run` starts a program on one."""

    def __init__(self) -> None:
        self.name = f"du{uuid.uuid4().hex[:6]}"
        self.switch = f"{self.name}-sw"

    def host(self, name: str) -> str:
        return f"{self.name}-{name}"

    def address(self, name: str) -> str:
        return f"{NET}.{HOSTS[name]}"

    def build(self) -> None:
        try:
            ip("netns", "add", self.switch)
        except subprocess.CalledProcessError:
            pytest.skip("this machine does not allow network namespaces")
        ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "br0", "up")
        for name in HOSTS:
            host = self.host(name)
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
            ip(
                "link",
                "add",
                "veth0",
                "netns",
                host,
                "type",
                "veth",
                "peer",
                "name",
                f"p-{name}",
                "netns",
                self.switch,
            )
            ip("-n", self.switch, "link", "set", f"p-{name}", "master", "br0", "up")
            ip("-n", host, "addr", "add", f"{self.address(name)}/24", "dev", "veth0")
            ip("-n", host, "link", "set", "veth0", "up")

    def cable(self, name: str, whole: bool) -> None:
        """Cut a host's cable, or mend it."""
        ip("-n", self.switch, "link", "set", f"p-{name}", "up" if whole else "down")

    def run(self, name: str, *words: str, **more) -> subprocess.Popen:
        return subprocess.Popen(["ip", "netns", "exec", self.host(name), *words], **more)

    def processes(self, name: str) -> list[int]:
        found = subprocess.run(["ip", "netns", "pids", self.host(name)], capture_output=True, text=True, check=False)
        return [int(word) for word in found.stdout.split()]

    def remove(self) -> None:
        for host in (*map(self.host, HOSTS), self.switch):
            for process in subprocess.run(
                ["ip", "netns", "pids", host], capture_output=True, text=True, check=False
            ).stdout.split():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


@contextmanager
def network() -> Iterator[Network]:
    """Hosts that are there inside of the `with`."""
    found = Network()
    try:
        found.build()
        yield found
    finally:
        found.remove()
