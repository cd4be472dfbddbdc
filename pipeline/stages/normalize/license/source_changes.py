"""Changes of files: the place of each in the chain of its file, and its license, which is that of the file at the commit.

A change has a license where the file had the same one before and after it, by what it said itself then, and by the evidence that
the source held at that commit. What a pin declares counts at the commits whose evidence is that of the pinned one.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.contracts.part import Tables
from pipeline.core.change_text import change_path
from pipeline.core.table_names import COMMIT_EVIDENCE, HISTORY, VERSIONS
from pipeline.stages.normalize.encodings.decode import Decoded, decode
from pipeline.stages.normalize.license.decide import LicenseDecision, LicenseRuling, SourceLicenses

_QUARANTINED = "license_quarantined"
Evidence = Mapping[str, bytes]
"""Path -> content of the files of license evidence, without secrets."""


@dataclass(frozen=True)
class Chronology:
    """The columns of a document that say which change it is; all None for a file."""

    repo_stable_id: str | None = None
    filepath_stable_id: str | None = None
    file_local_commit_index: int | None = None
    commit_hash: str | None = None


@dataclass(frozen=True)
class Scrubbing:
    """Functions that scrub the text of the file at a path, and the content of a file of license evidence."""

    text: Callable[[str, str], str]
    evidence: Callable[[bytes], bytes]


@dataclass(frozen=True)
class _Link:
    path: str
    commit: str
    versions: tuple[str, str]
    chronology: Chronology


class SourceChanges:
    """The changes of the files of one source."""

    def __init__(
        self,
        collected: Tables,
        evidence: Evidence,
        licenses_of: Callable[[Evidence, bool], SourceLicenses],
        scrubbing: Scrubbing,
    ) -> None:
        """Read the chains. `evidence` is that of the pin; `licenses_of` takes that of a commit, and whether it is this one."""
        rows = collected.table(HISTORY).to_pylist()
        names = tuple(Chronology.__dataclass_fields__)
        self._links = {
            change_path(row["commit_hash"], row["path"]): _Link(
                row["path"],
                row["commit_hash"],
                (row["old_blob_id"], row["new_blob_id"]),
                Chronology(*(row[name] for name in names)),
            )
            for row in rows
        }
        versions = collected.table(VERSIONS, ["path", "git_blob_id", "content"]).to_pylist()
        self._contents = {(row["path"], row["git_blob_id"]): row["content"] for row in versions}
        self._other_evidence: dict[str, dict[str, str | None]] = {}
        for row in collected.table(COMMIT_EVIDENCE).to_pylist():
            self._other_evidence.setdefault(row["commit_hash"], {})[row["path"]] = row["git_blob_id"]
        self._evidence = evidence
        self._scrubbing = scrubbing
        self._licenses_of = licenses_of
        self._licenses = lru_cache(maxsize=64)(self._licenses_with)
        self._version = lru_cache(maxsize=16)(self._read_version)

    def holds(self, path: str) -> bool:
        """Return whether the document at a path is a change."""
        return path in self._links

    def place(self, path: str) -> tuple[str, int]:
        """Return where a file, or a change after it, is read: by the path of the file, and its number in the chain."""
        link = self._links.get(path)
        return (path, -1) if link is None else (link.path, link.chronology.file_local_commit_index or 0)

    def chronology(self, path: str) -> Chronology:
        """Return which change the document at a path is."""
        return self._links[path].chronology

    def decide(self, path: str, ruling: LicenseRuling) -> LicenseDecision:
        """Return the license of a change: that of its file before and after."""
        link = self._links[path]
        other = self._other_evidence.get(link.commit, {})
        licenses = self._licenses(tuple(sorted(other.items(), key=str)))
        found: list[LicenseDecision] = []
        for blob_id in link.versions:
            version = self._version(link.path, blob_id)
            if version is None:
                return LicenseDecision(None, f"version {blob_id} of its file cannot be decoded", _QUARANTINED)
            decision = licenses.decide(link.path, version[1], ruling)
            found.append(_at_commit(decision, link.commit, {link.path, *self._evidence, *other}))
        before, after = found
        if before.drop or after.drop:
            return after if after.drop else before
        if before.expression != after.expression:
            detail = f"the license of its file changes: {before.expression} before, {after.expression} after"
            return LicenseDecision(None, detail, _QUARANTINED)
        return after

    def holds_replaced(self, path: str, text: str) -> bool:
        """Return whether a text has a line of which something is replaced where the whole file is scrubbed, before or after."""
        link, lines = self._links[path], frozenset(text.split("\n"))
        versions = (self._version(link.path, blob_id) for blob_id in link.versions)
        pairs = (zip(raw.split("\n"), text.split("\n"), strict=False) for raw, text in filter(None, versions))
        return any(raw != scrubbed and raw in lines for each in pairs for raw, scrubbed in each)

    def _read_version(self, path: str, blob_id: str) -> tuple[str, str] | None:
        """Return the text of a version of a file, as it was and scrubbed; None if it cannot be decoded."""
        decoded = decode(self._contents[path, blob_id])
        return (decoded.text, self._scrubbing.text(path, decoded.text)) if isinstance(decoded, Decoded) else None

    def _licenses_with(self, other: tuple[tuple[str, str | None], ...]) -> SourceLicenses:
        """Return what decides licenses where some files of evidence are other ones than at the pinned commit."""
        contents = {path: self._contents[path, blob_id] for path, blob_id in other if blob_id is not None}
        kept = {path: content for path, content in self._evidence.items() if path not in dict(other)}
        found = kept | {path: self._scrubbing.evidence(content) for path, content in contents.items()}
        return self._licenses_of(found, not other)


def _at_commit(decision: LicenseDecision, commit: str, paths: Collection[str]) -> LicenseDecision:
    """Return a decision whose lines of evidence name files as git calls those of a commit."""
    named = tuple(f"{path}:" for path in paths)
    lines = [f"{commit}:{line}" if line.startswith(named) else line for line in decision.detail.split("\n")]
    return replace(decision, detail="\n".join(lines))
