"""SOURCE_KINDS: the registry of the kinds of source, by the value of `kind` in a pin.

A kind that a program registers exists in its process only, so it is collected with one worker.
"""

from collections.abc import Mapping
from typing import Any

from pipeline.core.registry import Registry
from pipeline.stages.collect.kinds import archive, git, jsonl, local, sdist
from pipeline.stages.collect.kinds.source_kind import Origin, SourceKind, plain_origin

SOURCE_KINDS: Registry[SourceKind[Any]] = Registry(
    "source kind", sdist.KIND, archive.KIND, git.KIND, local.KIND, jsonl.KIND, is_in_parts=True
)


def origin_of(pin: Mapping[str, Any]) -> Origin:
    """Return the origin of a source from the identity of its pin: by kind and revision, where this process lacks the kind."""
    return SOURCE_KINDS[pin["kind"]].origin_of(pin) if pin["kind"] in SOURCE_KINDS else plain_origin(pin)


def is_file(pin: Mapping[str, Any]) -> bool:
    """Return whether the revision of a pin is the SHA-256 of one file, as far as this process knows its kind."""
    return pin["kind"] in SOURCE_KINDS and SOURCE_KINDS[pin["kind"]].is_file
