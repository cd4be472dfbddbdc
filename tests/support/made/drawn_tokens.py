"""Tokens drawn from the rows of a snapshot, and an oracle: what the bytes that `which` names read as, in a file read anew.

It shares no code with its subject: a token's spelling is the tokenizer library's, a file is read from where its source lies, and
the text before a token is compared as a whole.
"""

import random
import re
from collections.abc import Callable, Iterator
from functools import cache

from tokenizers import Tokenizer

from pipeline.core.records import Split
from pipeline.core.table_names import PACKED
from pipeline.lineage.origins.token_places import RowName
from pipeline.lineage.origins.which import TokenOrigin
from pipeline.store.snapshot import Snapshot

_PLACEHOLDER = re.compile(rb"<redacted-[^<>]*>/?")
"""A placeholder, with the separator that is written after one of a folder."""
_FIRST_TEXT_ID = 16
"""Ids below are special tokens."""
_PARTIAL = "\ufffd"

ReadFile = Callable[[str, str], bytes]
"""Reads a file of a source, by name and path, as it was received."""


def drawn_tokens(snapshot: Snapshot, number: int, seed: int) -> Iterator[tuple[RowName, int]]:
    """Yield slots with text, drawn evenly from all slots of all rows."""
    rows = []
    for source in snapshot.sources:
        for split in Split:
            table = snapshot.store.read(source.rows).table(PACKED[split], ["input_ids"])
            rows += [(source.name, split, pack_id, ids) for pack_id, ids in enumerate(table["input_ids"].to_pylist())]
    draw = random.Random(seed)
    while number:
        name, split, pack_id, ids = draw.choice(rows)
        slot = draw.randrange(len(ids))
        if ids[slot] >= _FIRST_TEXT_ID:
            number -= 1
            yield RowName(name, split, pack_id), slot


class TokenOracle:
    """Judges the origins of a snapshot's tokens. `texts` gives the normalized text of a document by its id."""

    def __init__(self, snapshot: Snapshot, read_file: ReadFile, texts: Callable[[str, str], str]) -> None:
        self.snapshot = snapshot
        self._tokenizer = Tokenizer.from_file(str(snapshot.tokenizer_file))
        self._read_file, self._text = cache(read_file), cache(texts)
        self._prefix = cache(self._prefix_of)

    def flaw(self, origin: TokenOrigin) -> str | None:
        """Return what is wrong with an origin, or None."""
        if origin.start is None or origin.end is None or origin.missing:
            return f"no bytes: {origin.missing}"
        source, path = origin.document["source"], origin.document["path"]
        text = self._text(source, origin.document["document_id"]).encode()
        content = self._read_file(source, path)
        if "placeholder" in origin.changed:
            placeholders = _PLACEHOLDER.finditer(text)
            is_in_one = any(each.start() < origin.text_end and origin.text_start < each.end() for each in placeholders)
            return None if is_in_one else "it is in no placeholder"
        encoding = origin.edits["encoding"]
        found = _unified(content[origin.start : origin.end].decode(encoding, "replace"))
        spelled = self._tokenizer.decode([origin.token_id])
        if found != spelled and _PARTIAL not in spelled:
            return f"bytes {origin.start} to {origin.end} are {found!r}, and the token is {spelled!r}"
        if not origin.edits["num_redactions"]:
            before = text[: origin.text_start].decode("utf-8", "ignore")
            if self._prefix(source, path, encoding, origin.start) != before:
                return f"the text before byte {origin.start} is another"
        return None

    def _prefix_of(self, source: str, path: str, encoding: str, end: int) -> str:
        """Return the text of a file before a byte, as it is after normalizing a file without placeholders."""
        return _unified(self._read_file(source, path)[:end].decode(encoding, "ignore")).removeprefix("\ufeff")


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
