"""S3 server of tests: moto's, or the one that SLUICE_TEST_S3 names, and a proxy before it that breaks requests."""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "of-these-tests", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
_SERVER = """
import sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""
"""One request at a time: with threads, moto compares a tag and writes in two steps, between which another request may write."""
Fault = Callable[[int, str, str], str]
"""Number, method and path of a request -> nothing, or what happens to it: one of the words in `faulty_proxy`."""


@contextmanager
def s3_server(port: int = 0) -> Iterator[str]:
    """Yield the address of a server, of moto on that port if it is not 0. Skips the test where obstore or moto is not installed."""
    for name in ("obstore", "moto"):
        if find_spec(name) is None and not (name == "moto" and "SLUICE_TEST_S3" in os.environ):
            pytest.skip(f"{name} is not installed")
    if "SLUICE_TEST_S3" in os.environ:
        yield os.environ["SLUICE_TEST_S3"]
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))
        port = free.getsockname()[1]
    line = [sys.executable, "-c", _SERVER, str(port)]
    server = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def make_bucket(endpoint: str, name: str) -> None:
    """Make a bucket in moto's server, which takes requests without a signature."""
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT"), timeout=10).close()


@contextmanager
def faulty_proxy(endpoint: str, fault: Fault) -> Iterator[str]:
    """Yield the address of a proxy before a server that does to each request what `fault` says.

    `refuse` answers 503 and `forbid` 403; `unconditional` passes it on without its conditions, `slow` after a second; `lose` passes
    it on and answers nothing, `cut` half of the answer.
    """
    target, guard, numbers = urlsplit(endpoint), threading.Lock(), iter(range(1 << 30))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self._body()
            with guard:
                number = next(numbers)
            kind = fault(number, self.command, self.path)
            if kind == "refuse":
                self._answer(503, [("Content-Type", "application/xml")], b"<Error><Code>SlowDown</Code></Error>")
                return
            if kind == "forbid":
                self._answer(403, [("Content-Type", "application/xml")], b"<Error><Code>AccessDenied</Code></Error>")
                return
            if kind == "unconditional":
                del self.headers["If-Match"], self.headers["If-None-Match"]
            if kind == "slow":
                time.sleep(1.0)
            connection = http.client.HTTPConnection(str(target.hostname), target.port, timeout=60)
            names = ("host", "connection", "transfer-encoding", "content-length")
            headers = {name: value for name, value in self.headers.items() if name.lower() not in names}
            connection.request(self.command, self.path, body, headers | {"Host": str(self.headers["Host"])})
            answer = connection.getresponse()
            content = answer.read()
            if kind == "lose":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._answer(answer.status, answer.getheaders(), content, is_cut=kind == "cut" and len(content) > 1)

        def _body(self) -> bytes:
            if "chunked" not in str(self.headers.get("Transfer-Encoding", "")):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, is_cut: bool = False) -> None:
            self.send_response_only(status)
            names = ("transfer-encoding", "content-length", "connection")
            for name, value in headers:
                if name.lower() not in names:
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length", str(len(content)))
            is_head = self.command == "HEAD"
            self.send_header("Content-Length", length if is_head else str(len(content)))
            self.end_headers()
            if not is_head:
                self.wfile.write(content[: len(content) // 2] if is_cut else content)
            if is_cut:
                self.close_connection = True
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        proxy.server_close()


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"no server on port {port}")
