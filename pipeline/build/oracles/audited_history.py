"""Oracle of histories: whether the links of chains, the changes that were dropped and the evidence at commits are those of git.

What a source's listing says of its commits was read by code of its own. Which words in a subject say that code was formatted is not
judged: where it has none of them, it does not.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.build.oracles.audited_changes import OF_TEXTS, commit_and_file
from pipeline.build.oracles.audited_files import encoded_path
from pipeline.build.oracles.audited_parts import Name
from pipeline.contracts.part import Tables
from pipeline.core.table_names import (
    COMMIT_EVIDENCE,
    DROPPED,
    FILES,
    HISTORY,
    LISTED_CHANGES,
    LISTED_EVIDENCE,
    VERSIONS,
)

_NO_LINK = frozenset({"not_modified", "binary_change", "small_change", "large_change"})
_OF_CHANGES = OF_TEXTS | _NO_LINK | {"large_commit", "routine_commit"}
"""Reasons of drops of changes alone."""
_AS_LISTED = ("author_time", "commit_time", "old_blob_id", "new_blob_id")
_OF_FILES = ("path", "is_evidence")
_Row = Mapping[str, Any]


def misrecorded_history(source: str, stored: Tables, listing: Tables, request: Mapping[str, Any]) -> Iterator[Name]:
    """Yield source and path of the links that no commit gives, or that are missing; of the changes that were dropped for a reason
    that does not hold; and of the evidence of commits that is other than theirs, or missing. Of a source without a history, none.
    """
    pin = request["pins"].get(source, {})
    if not pin.get("history"):
        return
    has_withdrawn = any(text.startswith("sha256:") or text.split("/")[0] == source for text in request["withdrawn"])
    rows = listing.table(LISTED_CHANGES).to_pylist()
    changes = {(row["commit_hash"], row["path"]): row for row in rows}
    links = stored.table(HISTORY).to_pylist()
    files = {encoded_path(row["path"]) for row in stored.table(FILES, _OF_FILES).to_pylist() if not row["is_evidence"]}
    flaws = [*_mislinked(source, links, changes, str(pin["revision"]), has_withdrawn), *_unlinked(links, rows, files)]
    if stored.identity.get("changes"):
        flaws += _misdropped(stored.table(DROPPED).to_pylist(), changes)
        flaws += _misstated_evidence(stored, listing, pin, request["limits"]["max_file_bytes"], has_withdrawn)
    yield from ((source, path) for path in flaws)


def _mislinked(
    source: str, links: Iterable[_Row], changes: Mapping[Name, _Row], revision: str, has_withdrawn: bool
) -> Iterator[str]:
    """Yield the paths of the links that are other than what git says of their commit, or have another number or name of a file."""
    numbers: Counter[str] = Counter()
    for row in links:
        path, found = row["path"], changes.get((row["commit_hash"], encoded_path(row["path"])))
        ids = (_stable_id(source), _stable_id(source, path))
        stated = (row["repo_stable_id"], row["filepath_stable_id"], row["source"], row["revision"])
        is_own = stated == (*ids, source, revision) and row["file_local_commit_index"] == numbers[path]
        numbers[path] += 1
        if found is None or not (is_own and _is_of_commit(row, found, has_withdrawn)):
            yield path


def _is_of_commit(row: _Row, found: _Row, has_withdrawn: bool) -> bool:
    is_silent = has_withdrawn and not row["subject"]
    sha256 = hashlib.sha256(row["subject"].encode("utf-8", "surrogateescape")).hexdigest()
    is_named = is_silent or sha256 == found["subject_sha256"]
    is_same = all(row[name] == found[name] for name in _AS_LISTED)
    is_same = is_same and list(row["parent_hashes"]) == found["parent_hashes"]
    is_sized = not found["num_diff_chars"] or row["num_diff_chars"] == found["num_diff_chars"]
    return is_named and is_same and is_sized and _NO_LINK.isdisjoint(found["reasons"])


def _unlinked(links: Iterable[_Row], rows: Iterable[_Row], files: set[str]) -> Iterator[str]:
    """Yield the paths of the files of which a change must be a link and is none."""
    known = {(row["commit_hash"], encoded_path(row["path"])) for row in links}
    for row in rows:
        is_link = row["path"] in files and OF_TEXTS.issuperset(row["reasons"])
        if is_link and (row["commit_hash"], row["path"]) not in known:
            yield f"{row['commit_hash']}:{row['path']}"


def _misdropped(dropped: Iterable[_Row], changes: Mapping[Name, _Row]) -> Iterator[str]:
    """Yield the paths of the changes that were dropped for a reason that git does not give, or as of another size."""
    for row in dropped:
        if row["reason"] not in _OF_CHANGES:
            continue
        commit, path = commit_and_file(row["path"])
        found = changes.get((commit, encoded_path(path)))
        is_sized = row["reason"] not in ("small_change", "large_change") or (
            found is not None and row["num_bytes"] == found["num_diff_chars"]
        )
        if found is None or row["reason"] not in found["reasons"] or not is_sized:
            yield row["path"]


def _misstated_evidence(
    stored: Tables, listing: Tables, pin: Mapping[str, Any], limit: int, has_withdrawn: bool
) -> Iterator[str]:
    """Yield the paths of the evidence that a commit has otherwise, that has no version, or that is missing beside a kept change.

    A file that the pin excludes need not be there, nor one whose name is none of evidence: those that some row names are known.
    """
    listed = {(row["commit_hash"], row["path"]): row for row in listing.table(LISTED_EVIDENCE).to_pylist()}
    rows = stored.table(COMMIT_EVIDENCE).to_pylist()
    named_versions = stored.table(VERSIONS, ["path", "git_blob_id"]).to_pylist()
    versions = {(row["path"], row["git_blob_id"]) for row in named_versions}
    stated = set()
    for row in rows:
        at = (row["commit_hash"], encoded_path(row["path"]))
        found, git_blob_id = listed.get(at), row["git_blob_id"]
        is_absent = git_blob_id is None and (
            has_withdrawn or (found is not None and (found["num_bytes"] is None or found["num_bytes"] > limit))
        )
        is_there = found is not None and found["git_blob_id"] == git_blob_id
        if at in stated or not (is_absent or (is_there and (row["path"], git_blob_id) in versions)):
            yield f"{row['commit_hash']}:{row['path']}"
        stated.add(at)
    collected = stored.table(FILES, _OF_FILES).to_pylist()
    named = {encoded_path(row["path"]) for row in rows} | {
        encoded_path(row["path"]) for row in collected if row["is_evidence"]
    }
    kept = {commit_and_file(row["path"])[0] for row in collected} - {""}
    for commit, path in sorted(listed.keys() - stated):
        if commit in kept and (path in named or (not pin.get("exclude") and _is_plain(path))):
            yield f"{commit}:{path}"


def _is_plain(path: str) -> bool:
    """Return whether a file is evidence about licenses by its whole name."""
    return path.rpartition("/")[2] in ("LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING", "NOTICE")


def _stable_id(*parts: str) -> str:
    """Return the first 16 digits of the digest of names, between which are zero bytes."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
