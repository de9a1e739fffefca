"""A real S3 server in this process, some of whose answers can be made failures or come late."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
ANSWERS = {
    "busy": ("503 Slow Down", BUSY),
    "error": ("500 Internal Server Error", BUSY),
    "denied": ("403 Forbidden", DENIED),
}
SECRET = "s3cr3t-value-that-must-not-leak"


class Faulty:
    """A server's application; `rule`, asked of each request, says "busy", "error", "denied", "slow" or None."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.failed = inner, 0
        self.rule: Callable[[dict[str, Any]], str | None] | None = None
        self.lock = threading.Lock()

    def __call__(self, environment, start):
        with self.lock:
            act = self.rule(environment) if self.rule else None
            self.failed += act in ANSWERS
        if act == "slow":
            time.sleep(1)
        if act in ANSWERS:
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
            status, body = ANSWERS[act]
            start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        return self.inner(environment, start)

    @contextmanager
    def following(self, rule: Callable[[dict[str, Any]], str | None]) -> Iterator[None]:
        """Follow a rule while the `with` lasts."""
        self.rule = rule
        try:
            yield
        finally:
            self.rule = None

    @contextmanager
    def refusing(self, *parts: str) -> Iterator[None]:
        """Refuse to write what has all of these parts in its path."""
        with self.following(
            lambda environment: (
                "denied"
                if environment["REQUEST_METHOD"] == "PUT" and all(part in environment["PATH_INFO"] for part in parts)
                else None
            )
        ):
            yield


@contextmanager
def object_store() -> Iterator[Faulty]:
    """The server, with an empty bucket `bucket`; this process and those it starts find it by their environment."""
    import s3fs

    application = Faulty(DomainDispatcherApplication(create_backend_app))
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{running.server_port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        files = s3fs.S3FileSystem(use_listings_cache=False)
        if files.exists("bucket"):  # the server's memory outlives it
            files.rm("bucket", recursive=True)
        files.mkdir("bucket")
        yield application
    running.shutdown()
