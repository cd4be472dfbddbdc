"""Oracle of late drops: whether a file can hold the evaluation item that its drop names, or a secret that no scrubber removes.

Solutions are searched by runs of tokens of another expression. What scrubbing left is not judged where it changed the text.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipeline.build.oracles.audited_changes import is_change
from pipeline.build.oracles.drops.token_runs import jaccard_of, runs_of, tokens_of, tokens_of_comments
from pipeline.build.oracles.withheld_names import rows_as_collected, stands_for_another
from pipeline.contracts.part import Tables
from pipeline.core.table_names import DROPPED, FILES

ITEMS_FOLDER = "evaluation items"
"""Place of an audit: the folder of the items that the build was given."""
_LATE = frozenset({"contaminated", "unscrubbable"})
_ITEM = re.compile(r"item (.+): (\d\.\d+) of its solution in (code|comments), Jaccard (\d\.\d+)", re.DOTALL)
_NUM_TOKENS, _NUM_SIMILAR = 13, 5
_PART = 0.5
"""Share of what the stage measured that is found again at least: one token that differs is in 13 runs."""
_ROUNDED = 1e-3
_IN_PATH = "its path holds a secret or an e-mail address, and a path is never changed: "
_NOT_SHOWN = "<redacted-"
"""Part of the name of an item that holds a secret: any item may be meant."""
_LEFT = re.compile(r"secrets or addresses were still found after \d+ rounds")
_REPLACED_ELSEWHERE = "it holds a line of which something is replaced where the whole file is read"
_SIGNS_OF_SECRETS = re.compile(r"pass|secret|token|key|pwd|@", re.IGNORECASE)
_RUNS = re.compile(r"[A-Za-z0-9_+=-]+")
_SHORTEST_SECRET = 12


def unfounded_drops(
    stored: Tables,
    collected: Tables,
    places: Mapping[str, Path],
    limits: Mapping[str, float],
    reads: Callable[[str], bool] = lambda path: True,
) -> Iterator[tuple[str, str]]:
    """Yield source and path of the files that were dropped for an evaluation item of which they hold too little by `limits`, and of
    those that were for a secret although the text was left as it was, or in a path that can hold none, or that is stored. Of a file
    whose path `reads` denies, its language is read by another lexer, and the item is not judged.
    """
    solutions = places.get(ITEMS_FOLDER)
    columns = ["source", "path", "reason", "detail", "text_sha256"]
    rows = [row for row in stored.table(DROPPED, columns).to_pylist() if row["reason"] in _LATE]
    yield from (_name(row) for row in rows if stands_for_another(row["path"]) != row["detail"].startswith(_IN_PATH))
    table = collected.table(FILES, ["path", "content"]) if rows else None
    paths = [] if table is None else table["path"].to_pylist()
    called = {
        row["path"]: (row, name) for row, name in zip(rows_as_collected(rows, paths), map(_name, rows), strict=True)
    }
    for path, content in () if table is None else zip(paths, table["content"], strict=True):
        if path not in called:
            continue
        (row, name), text = called[path], content.as_py()
        if row["reason"] == "contaminated":
            is_founded = not reads(path) or _holds_item(row, text, _solutions(solutions), limits)
        else:
            is_founded = _is_unscrubbable(row, text)
        if not is_founded:
            yield name


def _name(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["source"], row["path"]


def _holds_item(
    row: Mapping[str, Any], content: bytes, solutions: Mapping[str, str], limits: Mapping[str, float]
) -> bool:
    """Return whether a file has about as much of the solution as its drop says; one that is not in ASCII is not judged."""
    found = _ITEM.fullmatch(row["detail"])
    if found is None:
        return False
    named = solutions.values() if _NOT_SHOWN in found[1] else filter(None, [solutions.get(found[1])])
    stated = {"min_overlap": float(found[2]), "min_jaccard": float(found[4])}
    if not any(value >= limits[name] - _ROUNDED for name, value in stated.items()):
        return False
    own = (tokens_of if found[3] == "code" else tokens_of_comments)(content)
    return any(_holds(own, tokens_of(each.encode()), stated) or not content.isascii() for each in named)


def _holds(own: Sequence[bytes], wanted: Sequence[bytes], stated: Mapping[str, float]) -> bool:
    """Return whether tokens hold a part of what is stated of a solution, at least."""
    runs = runs_of(wanted, _NUM_TOKENS)
    overlap = len(runs & runs_of(own, _NUM_TOKENS)) / max(1, len(runs))
    similarity = jaccard_of(runs_of(own, _NUM_SIMILAR), runs_of(wanted, _NUM_SIMILAR))
    return overlap >= _PART * stated["min_overlap"] and similarity >= _PART * stated["min_jaccard"]


@lru_cache(maxsize=2)
def _solutions(folder: Path | None) -> dict[str, str]:
    """Return the solutions of the shipped items and of those in a folder, by the ids of the items."""
    shipped = files("pipeline.stages.normalize.contamination").joinpath("cpp_small.jsonl").read_text("utf-8")
    texts = [shipped, *(path.read_text("utf-8") for path in (sorted(folder.glob("*.jsonl")) if folder else ()))]
    items = (json.loads(line) for text in texts for line in text.split("\n") if line.strip())
    return {item["id"]: item["solution"] for item in items}


def _is_unscrubbable(row: Mapping[str, Any], content: bytes) -> bool:
    """Return whether a path can hold a secret, a change a line of which something is replaced, or a text has another digest than
    its file, as one has in which something was found and replaced.
    """
    if row["detail"].startswith(_IN_PATH):
        return row["text_sha256"] is None and _may_hold_secret(row["path"])
    if row["detail"] == _REPLACED_ELSEWHERE:
        return is_change(row["path"])
    return _LEFT.fullmatch(row["detail"]) is not None and row["text_sha256"] not in _digests(content)


def _may_hold_secret(path: str) -> bool:
    """Return whether a path has a word that names a secret, or a long run of letters and digits."""
    runs = (run for run in _RUNS.findall(path) if len(run) >= _SHORTEST_SECRET)
    return _SIGNS_OF_SECRETS.search(path) is not None or any(set(run) & set("0123456789") for run in runs)


def _digests(content: bytes) -> Collection[str | None]:
    """Return the digests that a text in which nothing was replaced may have, and None."""
    unmarked = content.removeprefix(b"\xef\xbb\xbf")
    unified = unmarked.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return {None, *(hashlib.sha256(each).hexdigest() for each in (content, unmarked, unified))}
