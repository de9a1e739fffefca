"""TLS over real sockets: a scheduler with certificates of an authority of its own; who has none stays outside."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import socket
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import dask_uncert as du
from dask_uncert.errors import ClusterError, InputError
from tests.support import ROOT
from tests.support.schedulers import not_connected

pytestmark = pytest.mark.needs("openssl", "bash")


def made(folder: Path) -> str:
    """Run the commands of cluster/README.md, word for word, in a folder: an authority, a host and a client."""
    text = (ROOT / "cluster" / "README.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "openssl req -x509" in one]
    folder.mkdir()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_of_the_readme_make_certificates_and_keys_for_one_user_alone(tmp_path):
    assert made(tmp_path / "made").split() == ["host.pem:", "OK", "client.pem:", "OK"]
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "made").iterdir()}
    assert {name for name in files if not name.endswith(".srl")} == {
        f"{name}.{end}" for name in ("ca", "host", "client") for end in ("pem", "key")
    }
    assert {mode for name, mode in files.items() if name.endswith(".key")} == {0o600}
    key = (tmp_path / "made" / "host.key").read_bytes()
    assert isinstance(serialization.load_pem_private_key(key, None), ec.EllipticCurvePrivateKey)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The folder of certificates and the address of a scheduler with one worker."""
    folder = tmp_path_factory.mktemp("tls") / "ours"
    made(folder)
    made(folder.with_name("other"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tls://127.0.0.1:{port}"
    keys = [
        "--tls-ca-file",
        folder / "ca.pem",
        "--tls-cert",
        folder / "host.pem",
        "--tls-key",
        folder / "host.key",
    ]
    dask = [sys.executable, "-m", "dask"]
    started = [
        [
            *dask,
            "scheduler",
            "--protocol",
            "tls",
            "--host",
            "127.0.0.1",
            "--port",
            port,
            "--no-dashboard",
            *keys,
        ],
        [
            *dask,
            "worker",
            address,
            "--host",
            "127.0.0.1",
            "--protocol",
            "tls",
            "--no-nanny",
            "--no-dashboard",
            *keys,
        ],
    ]
    processes = [subprocess.Popen(list(map(str, one)), cwd=folder, stderr=subprocess.DEVNULL) for one in started]
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        time.sleep(0.1)
    yield folder, address
    for process in reversed(processes):
        process.terminate()
        process.wait(20)


def described(running, tmp_path, **changes):
    folder, address = running
    words = {"kind": "address", "address": address, "ca_file": str(folder / "ca.pem")}
    words |= {"cert": str(folder / "client.pem"), "key": str(folder / "client.key"), **changes}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({k: v for k, v in words.items() if v is not None}))
    return tmp_path / "c.yaml"


def test_certificates_of_the_same_authority_are_accepted(running, tmp_path):
    with du.connect(described(running, tmp_path)) as client:
        client.wait_for_workers(1, timeout=30)
        assert client.submit(sum, [1, 2]).result(timeout=20) == 3
        assert client.scheduler.address.startswith("tls://")


@pytest.mark.parametrize(
    "changes",
    [{"cert": None, "key": None}, {"ca_file": None, "cert": None, "key": None}],
    ids=["no_own", "none"],
)
def test_a_client_without_a_certificate_is_refused(running, tmp_path, changes):
    not_connected(ClusterError, "no scheduler answered at tls://", described(running, tmp_path, **changes), timeout=5)


def test_a_certificate_of_another_authority_is_refused(running, tmp_path):
    folder, _ = running
    other = folder.with_name("other")
    stranger = {"cert": str(other / "client.pem"), "key": str(other / "client.key")}
    not_connected(ClusterError, "no scheduler answered", described(running, tmp_path, **stranger), timeout=8)
    lost = described(running, tmp_path, cert=str(folder / "nothing.pem"))
    not_connected(InputError, r"there is no certificate at .*nothing.pem", lost)


def test_a_bare_socket_without_a_certificate_is_closed(running):
    folder, address = running
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.check_hostname = False
    port = int(address.rpartition(":")[2])

    def knock():
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            context.wrap_socket(plain) as wrapped,
        ):
            wrapped.sendall(b"x" * 100)
            return wrapped.recv(100)

    try:  # in TLS 1.3 the refusal comes with the first answer
        answer = knock()
    except (ssl.SSLError, ConnectionError):
        answer = b""
    assert answer == b""


def test_other_versions_are_refused_by_name(running, tmp_path, monkeypatch):
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0" if name == "numpy" else real(name))
    not_connected(ClusterError, r"the scheduler has numpy .*, here it is 1.0", described(running, tmp_path))
