"""TLS over real sockets: a scheduler with certificates of an authority of its own; who has none stays outside."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import dask_uncert as du
from dask_uncert.errors import ClusterError, InputError


def authority(folder: Path, name: str, roles: tuple[str, ...]) -> None:
    """A key and a certificate of an authority, and of each role, signed by it."""
    today = datetime.datetime.now(datetime.UTC)

    def write(who, key, signer, issuer, basic):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)])
        built = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(issuer or subject).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(today - datetime.timedelta(days=1))
            .not_valid_after(today + datetime.timedelta(days=2)).add_extension(basic, critical=True)
            .sign(signer, hashes.SHA256())
        )  # fmt: skip
        (folder / f"{who}.pem").write_bytes(built.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        (folder / f"{who}.key").write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        )
        return subject

    root = ec.generate_private_key(ec.SECP256R1())
    issuer = write(name, root, root, None, x509.BasicConstraints(ca=True, path_length=None))
    for role in roles:
        key = ec.generate_private_key(ec.SECP256R1())
        write(role, key, root, issuer, x509.BasicConstraints(ca=False, path_length=None))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The folder of certificates and the address of a scheduler with one worker."""
    folder = tmp_path_factory.mktemp("tls")
    authority(folder, "ca", ("host", "client"))
    authority(folder, "other", ("stranger",))
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
    processes = [
        subprocess.Popen(list(map(str, one)), cwd=folder, stderr=subprocess.DEVNULL) for one in started
    ]
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


def test_certificates_of_the_same_authority_are_let_in(running, tmp_path):
    with du.connect(described(running, tmp_path)) as client:
        client.wait_for_workers(1, timeout=30)
        assert client.submit(sum, [1, 2]).result(timeout=20) == 3
        assert client.scheduler.address.startswith("tls://")


@pytest.mark.parametrize(
    "changes",
    [{"cert": None, "key": None}, {"ca_file": None, "cert": None, "key": None}],
    ids=["no_own", "none"],
)
def test_who_has_no_certificate_is_not_let_in(running, tmp_path, changes):
    with (
        pytest.raises(ClusterError, match="no scheduler answered at tls://"),
        du.connect(described(running, tmp_path, **changes), timeout=5),
    ):
        pass


def test_a_stranger_is_not_let_in(running, tmp_path):
    folder, _ = running
    stranger = {"cert": str(folder / "stranger.pem"), "key": str(folder / "stranger.key")}
    with (
        pytest.raises(ClusterError, match="no scheduler answered"),
        du.connect(described(running, tmp_path, **stranger), timeout=8),
    ):
        pass
    lost = described(running, tmp_path, cert=str(folder / "nothing.pem"))
    with pytest.raises(InputError, match=r"there is no certificate at .*nothing.pem"), du.connect(lost):
        pass


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
    with (
        pytest.raises(ClusterError, match=r"the scheduler has numpy .*, here it is 1.0"),
        du.connect(described(running, tmp_path)),
    ):
        pass
