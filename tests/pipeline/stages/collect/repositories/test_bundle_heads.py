"""The heads of a bundle are those that its header lists, and one stands for all where HEAD, the branches or the refs agree."""

from pathlib import Path

import pytest

from pipeline.stages.collect.repositories.bundle_heads import bundle_heads, only_head
from tests.support.paths import MADE_CORPUS

A, B = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("header", "heads", "only"),
    [
        (f"# v2 git bundle\n{A} refs/heads/main\n", {"refs/heads/main": A}, A),
        (f"# v2 git bundle\n-{B} what it lacks\n{A} refs/heads/main\n", {"refs/heads/main": A}, A),
        (f"# v3 git bundle\n@object-format=sha1\n{A} refs/heads/a\n{B} HEAD\n", {"refs/heads/a": A, "HEAD": B}, B),
        (f"# v2 git bundle\n{A} refs/heads/a\n{A} refs/heads/b\n", {"refs/heads/a": A, "refs/heads/b": A}, A),
        (f"# v2 git bundle\n{A} refs/heads/a\n{B} refs/heads/b\n", {"refs/heads/a": A, "refs/heads/b": B}, None),
        (f"# v2 git bundle\n{A} refs/heads/a\n{B} refs/tags/v1\n", {"refs/heads/a": A, "refs/tags/v1": B}, A),
        (f"# v2 git bundle\n{B} refs/tags/v 1\n", {"refs/tags/v 1": B}, B),
        ("# v2 git bundle\n", {}, None),
        (f"# v9 git bundle\n{A} HEAD\n", None, None),
        ("int a;\n", None, None),
        ("", None, None),
    ],
)
def test_heads_are_those_of_the_header(
    header: str, heads: dict[str, str] | None, only: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.bundle"
    path.write_bytes(header.encode() + f"\nPACK{A} HEAD\n".encode())
    assert bundle_heads(path) == heads
    assert only_head(heads or {}) == only


def test_git_writes_such_a_header() -> None:
    assert list(bundle_heads(MADE_CORPUS.parent / "loom.bundle") or {}) == ["refs/heads/main"]
