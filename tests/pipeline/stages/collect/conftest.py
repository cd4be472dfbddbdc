"""Surroundings for collect: a stage context in a temporary folder, and a local package index that can misbehave."""

import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import starmap
from pathlib import Path
from pkgutil import resolve_name

import pyarrow as pa
import pytest

from pipeline.build.engines.part_task import measured
from pipeline.contracts.part import MadePart, Part, PartJob, PartOutput
from pipeline.core.errors import DigestError, SourceError
from pipeline.core.params import digest, fingerprint
from pipeline.pins.held_out import HeldOut
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selector
from pipeline.stages.collect.params import CollectParams, RetryPolicy
from pipeline.stages.stages import STAGES
from tests.support import git_repository as made
from tests.support.git_repository import Repository
from tests.support.made.made_archives import entry, tar_bytes

_ID = "id-of-"


@dataclass(frozen=True)
class MadeTables:
    """The tables of a part that was made in memory."""

    output: PartOutput

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        found = self.output.tables[name]
        return found if columns is None else found.select(list(columns))


@dataclass
class Surroundings:
    """A stage context whose blobs are files, whose parts stay in memory and are not made twice."""

    folder: Path
    pins: Sequence[SourcePin] = ()
    params: CollectParams = field(default_factory=CollectParams)
    offline: bool = False
    withdrawn: tuple[Selector, ...] = ()
    made: dict[str, PartOutput] = field(default_factory=dict)
    known_parts: dict[str, MadePart] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    input_id: str | None = None
    held_out: HeldOut = field(default_factory=HeldOut)
    erased: frozenset[str] = frozenset()

    @property
    def store_root(self) -> Path:
        return self.folder

    def blob(self, sha256: str) -> Path | None:
        place = self.folder / sha256
        return place if place.exists() else None

    def partial_blob(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.partial"

    def put_blob(self, chunks: Iterable[bytes], sha256: str, subject: str) -> Path:
        content = b"".join(chunks)
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            (self.folder / f"{sha256}.aside").write_bytes(content)
            raise DigestError(subject, f"its bytes have sha256 {found}", sha256, "Check the pin.")
        (self.folder / sha256).write_bytes(content)
        return self.folder / sha256

    def named_blob(self, name: str) -> Path | None:
        return self.blob(self.names[name]) if name in self.names else None

    def name_blob(self, name: str, sha256: str) -> None:
        self.names[name] = sha256

    def read(self, object_id: str) -> MadeTables:
        return MadeTables(self.made[object_id.removeprefix(_ID)])

    def known(self, part: Part) -> str | None:
        found = self.known_parts.get(_key_of(part))
        return None if found is None else found.object_id

    def make(self, parts: Sequence[Part]) -> tuple[Mapping[str, MadePart], Mapping[str, SourceError]]:
        made, failed = {}, {}
        for part in parts:
            kind = STAGES["collect"].part_kind(part.function)
            function = resolve_name(kind.functions[part.function])
            key = _key_of(part)
            if key in self.known_parts:
                made[part.name] = self.known_parts[key]
                continue
            inputs = {label: MadeTables(self.made[name.removeprefix(_ID)]) for label, name in part.inputs.items()}
            job = PartJob(part.name, part.params, inputs, part.identity, part.places)  # type: ignore[arg-type]  # tables alone
            try:
                output = measured(job, function(job), kind.measure)
            except SourceError as error:
                failed[part.name] = error
                continue
            self.made[part.name] = output
            made[part.name] = MadePart(part.name, f"{_ID}{part.name}", output.report, unchanged=False)
            self.known_parts[key] = replace(made[part.name], unchanged=True)
        return made, failed


def _key_of(part: Part) -> str:
    return digest([part.function, fingerprint(part.params), dict(part.identity)])


Create = Callable[..., Surroundings]


@pytest.fixture
def surroundings(tmp_path: Path) -> Create:
    folder = tmp_path / "blobs"
    folder.mkdir()

    def create(*pins: SourcePin, offline: bool = False) -> Surroundings:
        return Surroundings(folder, pins, offline=offline)

    return create


@pytest.fixture
def tar_gz() -> Callable[[Mapping[str, bytes]], bytes]:
    """The bytes of a tar.gz with these files."""

    return lambda files: gzip.compress(tar_bytes(*starmap(entry, files.items())))


@dataclass
class Index:
    """A simple index in HTML or JSON, and its files. `faults` are used up one a request for a file."""

    files: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    page_faults: list[str] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    continues: bool = True
    in_json: bool = False
    page: bytes | None = None
    """A page in JSON in place of the index's own."""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    def add(self, file_name: str, content: bytes, link_digest: str | None = None) -> str:
        """Offer a file; its link carries `link_digest`, by default the true one. Returns the true one."""
        true = hashlib.sha256(content).hexdigest()
        self.files[file_name] = content
        self.digests[file_name] = true if link_digest is None else link_digest
        return true

    @property
    def file_requests(self) -> list[str | None]:
        """The Range headers of the requests for files."""
        return [header for path, header in self.requests if path.startswith("/files/")]


def _handler(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None: ...

        def do_GET(self) -> None:
            index.requests.append((self.path, self.headers.get("Range")))
            if self.path in index.redirects:
                self.answer(302, b"", {"Location": index.redirects[self.path]})
            elif self.path.startswith("/git-that-stalls/"):
                index.closing.wait(5)
            elif self.path.startswith("/files/"):
                self.answer_file(index.files[self.path.rpartition("/")[2]])
            elif index.page_faults and index.page_faults.pop(0) == "unavailable":
                self.send_error(503)
            else:
                self.answer_page()

        def answer_page(self) -> None:
            if index.page is not None:
                self.answer(200, index.page, {"Content-Type": "application/vnd.pypi.simple.v1+json"})
                return
            if index.in_json:
                files = [
                    {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": digest}}
                    for name, digest in index.digests.items()
                ]
                page = {"meta": {"api-version": "1.0"}, "name": "demo-pkg", "files": files}
                self.answer(200, json.dumps(page).encode(), {"Content-Type": "application/vnd.pypi.simple.v1+json"})
                return
            fragments = {name: f"#sha256={digest}" if digest else "" for name, digest in index.digests.items()}
            links = [f'<a href="/files/{name}{fragments[name]}">{name}</a>' for name in index.files]
            self.answer(200, "".join(links).encode(), {"Content-Type": "text/html"})

        def answer_file(self, content: bytes) -> None:
            fault = index.faults.pop(0) if index.faults else ""
            start = self.start() if index.continues else 0
            status = 206 if start else 200
            headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
            if fault == "unavailable":
                self.send_error(503)
            elif fault == "gone":
                self.send_error(404)
            elif fault == "endless":
                self.answer(200, content * 50, {}, -1)
            elif fault in ("truncate", "stall"):
                self.answer(status, content[start : (start + len(content)) // 2], headers, len(content) - start)
                if fault == "stall":
                    index.closing.wait(5)
            else:
                self.answer(status, content[start:], headers)

        def start(self) -> int:
            header = self.headers.get("Range")
            return int(header.removeprefix("bytes=").rstrip("-")) if header else 0

        def answer(self, status: int, body: bytes, headers: dict[str, str], declared: int | None = None) -> None:
            self.send_response(status)
            length = {} if declared == -1 else {"Content-Length": str(declared or len(body))}
            for name, value in {**headers, **length}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
            self.close_connection = True

    return Handler


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index on this machine, which pip is configured with by environment, alone and in the clear."""
    index = Index()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(index))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    index.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.address}/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    yield index
    index.closing.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def delays() -> list[float]:
    """The delays that were waited, in seconds."""
    return []


@pytest.fixture
def retry(delays: list[float]) -> RetryPolicy:
    """Three attempts that do not wait, and a short stall timeout."""
    return RetryPolicy(num_attempts=3, first_delay_seconds=1.0, stall_timeout_seconds=0.4, sleep=delays.append)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return made.create(tmp_path / "repository")
