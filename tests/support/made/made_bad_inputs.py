"""Bad inputs: pins of archives, sdists, repositories and served files, made in a folder and in a local package index."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import git_repository as made
from tests.support.git_repository import Repository
from tests.support.made.made_bad_archives import SOUND, tar

if TYPE_CHECKING:
    from tests.pipeline.stages.collect.conftest import Index

PAGE = b"<!DOCTYPE html><title>Not found</title>" + b" " * 600
"""A page of a server in the place of a file."""


@dataclass
class BadInputs:
    """A folder and a server in which bad input is made."""

    folder: Path
    index: "Index"

    def archive(self, content: bytes, name: str = "bad.tar", sha256: str = "") -> str:
        """The pin of an archive at a path."""
        (self.folder / name).write_bytes(content)
        sha256 = sha256 or hashlib.sha256(content).hexdigest()
        return f'kind = "archive"\npath = "{name}"\nsha256 = "{sha256}"'

    def served(self, path: str, content: bytes | None = None, *faults: str) -> str:
        """The pin of an archive at a URL of the server."""
        content = tar(SOUND) if content is None else content
        sha256 = self.index.add("x.tar", content)
        self.index.faults = list(faults)
        return f'kind = "archive"\nurl = "{self.index.address}{path}"\nsha256 = "{sha256}"'

    def sdist(self, content: bytes, sha256: str, link_digest: str | None = None) -> str:
        """The pin of an sdist in the index."""
        self.index.add("demo_pkg-1.0.tar.gz", content, link_digest)
        lines = ['kind = "sdist"', 'project = "demo-pkg"', 'version = "1.0"', 'file_name = "demo_pkg-1.0.tar.gz"']
        return "\n".join([*lines, f'sha256 = "{sha256}"'])

    def repository(self) -> Repository:
        return made.create(self.folder / "repository")

    def git(self, commit: str, url: str = "", **more: str) -> str:
        """The pin of a commit."""
        url = url or (self.folder / "repository").as_uri()
        return "\n".join(
            ['kind = "git"', f'url = "{url}"', f'commit = "{commit}"', *(f"{k} = {v}" for k, v in more.items())]
        )
