"""Heads of a file of `git bundle`: the refs that its header lists, read without git, and the commit that stands for all of them."""

import re
from collections.abc import Mapping
from pathlib import Path

_SIGNATURE = re.compile(rb"# v[23] git bundle\n")
_HEAD = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) ([^\n]+)")
_MAX_HEADER = 1 << 20
_BRANCHES = "refs/heads/"


def bundle_heads(path: Path) -> dict[str, str] | None:
    """Return the ids that the refs of a bundle name, by ref; None for another file."""
    with path.open("rb") as file:
        signature, _, header = file.read(_MAX_HEADER).partition(b"\n")
    if not _SIGNATURE.fullmatch(signature + b"\n"):
        return None
    return listed_heads(header.partition(b"\n\n")[0])  # other lines are of what it lacks, and how it is written


def listed_heads(lines: bytes) -> dict[str, str]:
    """Return the ids in lines of an id, a blank and a ref, by ref. Other lines are none."""
    found = map(_HEAD.fullmatch, lines.split(b"\n"))
    return {head[2].decode("utf-8", "replace"): head[1].decode() for head in found if head}


def only_head(heads: Mapping[str, str]) -> str | None:
    """Return what `HEAD` names, else the only branch, else the only ref; None where several could be meant."""
    branches = {name: commit for name, commit in heads.items() if name.startswith(_BRANCHES)}
    named = {heads["HEAD"]} if "HEAD" in heads else set((branches or heads).values())
    return named.pop() if len(named) == 1 else None
