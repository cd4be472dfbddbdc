"""Offenses for the gates of collect."""

import hashlib
from collections.abc import Callable
from typing import Any, NoReturn

from pipeline.build.canaries.memory_build import Alteration, Changes, MadeOutput
from pipeline.build.canaries.offense import (
    IN_BOTH,
    SOURCES,
    Offense,
    after,
    altered,
    at_places,
    column,
    drop_without_cause,
    every,
    in_both,
    rows_changed,
    table_changed,
)
from pipeline.build.canaries.sound_sources import NUM_SOUND_FILES
from pipeline.contracts.part import LISTING_SUFFIX
from pipeline.core.errors import DigestError
from pipeline.core.table_names import FILES, LISTED

_REASONS = ("other_language", "excluded", "withdrawn", "link", "special", "submodule")
_NONE_LOST = "no_row_lost_in_collect"


def _fail(made: MadeOutput) -> NoReturn:
    raise DigestError(f"source {made.job.name}", "sha256 00", "the pinned one")


def _other_content(row: dict[str, Any]) -> dict[str, Any]:
    """Return a file with other bytes, and with the digests of these."""
    content = row["content"] + b"\n"
    git_id = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    sha256 = hashlib.sha256(content).hexdigest()
    return row | {"content": content, "git_blob_id": git_id, "blob_sha256": sha256, "num_bytes": len(content)}


_OTHER_FIELDS: dict[str, Callable[[Any], Any]] = {
    "git_blob_id": lambda _: "0" * 40,
    "blob_sha256": lambda _: "0" * 64,
    "num_bytes": lambda number: number + 1,
    "is_evidence": lambda _: True,
}
_EMPTY_LISTING = table_changed(LISTED, lambda table: table.slice(0, 0))

COLLECT_OFFENSES = (
    Offense(
        "source_of_other_bytes",
        ("every_pin_verified",),
        Changes(tuple(Alteration("collect", source, _fail) for source in SOURCES)),
        least=len(SOURCES),
    ),
    in_both(
        "file_without_revision",
        ["every_file_has_a_revision"],
        "collect",
        column(FILES, "revision", at_places(lambda _: "")),
    ),
    Offense("source_that_was_not_read", ("every_pin_verified",), Changes(pin=lambda _: None), least=len(SOURCES)),
    Offense(
        "pin_without_license_metadata",
        ("every_pin_declares_a_license",),
        Changes(pin=lambda pin: pin.model_copy(update={"declared_license": ""})),
        least=len(SOURCES),
    ),
    in_both(
        "corpus_without_code",
        ["sources_hold_code"],
        "collect",
        column(FILES, "is_evidence", every(True)),
        least=NUM_SOUND_FILES,
    ),
    *(drop_without_cause("collect", FILES, [reason]) for reason in _REASONS),
    # By the size that it says, and by that which the source lists.
    drop_without_cause("collect", FILES, ["too_large"], 2 * IN_BOTH),
    in_both(
        "content_beside_other_digests",
        [_NONE_LOST],
        "collect",
        column(FILES, "content", at_places(lambda content: content + b"\n")),
    ),
    *(
        in_both(f"{name}_of_another_file", [_NONE_LOST], "collect", column(FILES, name, at_places(change)))
        for name, change in _OTHER_FIELDS.items()
    ),
    in_both("content_of_another_file", [_NONE_LOST], "collect", rows_changed(FILES, at_places(_other_content))),
    Offense(
        "files_that_no_listing_names",
        (_NONE_LOST,),
        after(*(altered(("collect", f"{source}{LISTING_SUFFIX}"), _EMPTY_LISTING) for source in SOURCES)),
        least=NUM_SOUND_FILES,
    ),
)
