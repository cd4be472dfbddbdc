"""A git repository of one's own making, with dates that never change."""

import gzip
import os
import subprocess
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

_IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.com",
}


@dataclass
class Repository:
    """A repository in `folder`; the commit of number n is of 2001-09-09 and n hours."""

    folder: Path
    num_commits: int = 0

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run git there, and return what it prints."""
        seconds = 1_000_000_000 + 3600 * self.num_commits
        dates = {"GIT_AUTHOR_DATE": f"@{seconds} +0200", "GIT_COMMITTER_DATE": f"@{seconds + 60} +0200"}
        environment = {**os.environ, **_IDENTITY, **dates}
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, input=stdin, capture_output=True, check=True)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str, content: bytes) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def commit(self, subject: str = "Change", **files: str) -> str:
        """Commit everything there, after writing `files` (`__` is read as a dot); returns the id."""
        for name, content in files.items():
            self.write(name.replace("__", "."), content.encode())
        self.git("add", "--all")
        self.num_commits += 1
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def tree(self, *entries: tuple[str, bytes, str]) -> str:
        """A tree object of any entries (mode, name, id), whether git would make it or not."""
        content = b"".join(
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(name_of) for mode, name, name_of in entries
        )
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=content)

    def commit_tree(self, tree: str) -> str:
        """A commit of a tree, reachable from a branch of its own."""
        commit = self.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=_commit_of(tree))
        self.git("update-ref", f"refs/heads/made-{tree[:8]}", commit)
        return commit


def create(folder: Path, hash_name: str = "sha1") -> Repository:
    """An empty repository."""
    folder.mkdir(parents=True)
    repository = Repository(folder)
    repository.git("init", "--quiet", "--initial-branch=main", f"--object-format={hash_name}")
    return repository


def _commit_of(tree: str) -> bytes:
    person = "A <a@example.com> 1000000000 +0000"
    return f"tree {tree}\nauthor {person}\ncommitter {person}\n\nMade\n".encode()


def smart_handler(root: Path) -> type[BaseHTTPRequestHandler]:
    """Serves the repositories below `root` by git's own program for web servers."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None: ...

        def do_GET(self) -> None:
            self.answer(b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)

        def answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            environment = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in {**fields, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return Handler
