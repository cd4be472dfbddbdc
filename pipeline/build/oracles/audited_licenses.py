"""Oracle of licenses: whether a document has the license that its first lines name, and a branch that satisfies it.

It reads expressions and the shipped policy with code of its own. What a person decided, `audited_decisions` judges.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from pipeline.build.oracles.audited_decisions import DECIDED
from pipeline.contracts.part import Tables
from pipeline.core.table_names import DOCUMENTS

FROM_FILE = "file"
"""The evidence of a license that a tag in the file itself names."""
_COLUMNS = ("source", "path", "text", "license", "license_class", "license_branch", "license_evidence")
_CLASSES = ("allowed", "tagged", "refused")
"""Names of the classes in the policy file, the least demanding first."""
_WORD = re.compile(r"[()]|[^\s()]+(?: WITH [^\s()]+)?")
_TAG = re.compile(r"[ \t/*#;-]{0,20}SPDX-License-Identifier: ?([A-Za-z0-9.+-]{1,80})(?: ?\*/)?")
_NUM_LINES = 5
_MARKS = ("reuse-ignore", 'r"')
"""Marks of a text in which a tag may not count, in lower case."""


def mislicensed_documents(stored: Tables) -> Iterator[tuple[str, str]]:
    """Yield source and path of the documents under another license than their own tag names, or by a branch that does not satisfy
    it or is of another class. Nothing where the part was made by another policy than the one that is shipped.
    """
    content = files("pipeline.stages.normalize.license").joinpath("license_policy.toml").read_bytes()
    if stored.identity.get("license_policy_sha256") != hashlib.sha256(content).hexdigest():
        return
    policy = tomllib.loads(content.decode())
    classes = {license: name for name in _CLASSES for license in policy[name]}
    for row in stored.table(DOCUMENTS, _COLUMNS).to_pylist():
        if row["license_evidence"] != DECIDED and not (_is_branch(row, classes) and _has_tag(row, classes)):
            yield row["source"], row["path"]


def satisfies(chosen: set[str], expression: str) -> bool:
    """Return whether those licenses are enough for an expression. AND binds before OR."""
    open_groups = [[False, True]]  # of each: whether an earlier alternative holds, and whether this one does so far
    for word in _WORD.findall(expression):
        if word == "(":
            open_groups.append([False, True])
        elif word == ")" and len(open_groups) > 1:
            holds = any(open_groups.pop())
            open_groups[-1][1] = open_groups[-1][1] and holds
        elif word == "OR":
            open_groups[-1] = [any(open_groups[-1]), True]
        elif word != "AND":
            open_groups[-1][1] = open_groups[-1][1] and word in chosen
    return any(open_groups[0])


def _licenses(expression: str) -> set[str]:
    return set(_WORD.findall(expression)) - {"(", ")", "AND", "OR"}


def _is_branch(row: Mapping[str, Any], classes: Mapping[str, str]) -> bool:
    """Return whether the branch of a document satisfies its license with licenses of it, and is of the document's class."""
    chosen = _licenses(row["license_branch"])
    found = [classes.get(each.partition(" WITH ")[0].removesuffix("+"), "refused") for each in chosen]
    is_of_class = max(found, key=_CLASSES.index, default="") == row["license_class"]
    return is_of_class and chosen <= _licenses(row["license"]) and satisfies(chosen, row["license"])


def _has_tag(row: Mapping[str, Any], classes: Mapping[str, str]) -> bool:
    """Return whether the only tag of a text, plain, in its first lines and of a license of the policy, is of the stored license."""
    lowered = row["text"].lower()
    if row["license_evidence"] != FROM_FILE or lowered.count("spdx-license-identifier") != 1:
        return True
    tags = (_TAG.fullmatch(line) for line in row["text"].split("\n", _NUM_LINES)[:_NUM_LINES])
    tag = next((found[1].lower() for found in tags if found), "")
    is_plain = tag in map(str.lower, classes) and not any(mark in lowered for mark in _MARKS)
    named = {license.partition(" WITH ")[0].lower() for license in _licenses(row["license"])}
    return not is_plain or tag in named
