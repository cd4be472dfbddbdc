"""Bundle: an archive of a snapshot. Its first member, `bundle.json`, says what follows, and its digest therefore all of it.

After it come the data card, and then the objects, each behind those that it was made from: its manifest, then its files. There is
no clock, host or path in it: equal snapshots with equal proofs give equal bytes on any machine. Blobs are not in it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import DamagedError, FormatError, ParamsError
from pipeline.core.params import canonical_json, digest, parse_json
from pipeline.store.store_layout import is_id

BUNDLE_FORMAT = 1
"""Format of bundle.json and of what follows it, apart from that of manifests and of snapshot.json."""
CONTENTS, CARD = "bundle.json", "card.md"
BUNDLE_REMEDY = "Export the snapshot again, and copy the file whole."
_MAX_NUM_BYTES = 64 << 20
"""Bytes of a manifest, and of the card."""
_VERDICT = ("blocking", "gate", "limit", "measure", "measured", "outcome", "passed")
"""Fields of a verdict that readers of a store need."""


@dataclass(frozen=True)
class BundleContents:
    """The fields of bundle.json: the ids of all objects in their order with the bytes of each manifest, and what is no object."""

    snapshot: str
    proof: str | None
    """The stage that verified the snapshot; None where its rows alone are in the bundle."""
    objects: Mapping[str, int]
    verdicts: Mapping[str, list[dict[str, Any]]]
    """The verdicts of the gates about each stage, without the time."""
    card_sha256: str
    card_num_bytes: int

    @property
    def digest(self) -> str:
        """The digest of what it says, and therefore of every byte of the bundle."""
        return digest(self._fields())

    def as_bytes(self) -> bytes:
        """Return the content of bundle.json."""
        return canonical_json({**self._fields(), "digest": self.digest})

    def _fields(self) -> dict[str, Any]:
        return vars(self) | {"format_version": BUNDLE_FORMAT, "objects": list(map(list, self.objects.items()))}


def parse_contents(member: tuple[str, bytes], subject: str) -> BundleContents:
    """Parse the first member, bundle.json. Raises FormatError for a newer format, DamagedError for what no export writes."""
    name, written = member
    if name != CONTENTS:
        raise DamagedError(subject, f"it begins with {name[:100]!r}", f"{CONTENTS}, of a bundle", BUNDLE_REMEDY)
    try:
        fields = parse_json(written)
        _refuse_other_format(subject, fields.pop("format_version"))
        fields.pop("digest")
        objects = {str(name): num_bytes for name, num_bytes in fields.pop("objects")}
        contents = BundleContents(objects=objects, **fields)
        is_sound = contents.as_bytes() == written and _is_sound(contents)
    except (ValueError, KeyError, TypeError, AttributeError, ParamsError) as error:
        found = f"its {CONTENTS} cannot be read ({type(error).__name__}: {error})"
        raise DamagedError(subject, found, "an exported bundle", BUNDLE_REMEDY) from error
    if not is_sound:
        raise DamagedError(subject, f"its {CONTENTS} is not as an export writes it", "its own digest", BUNDLE_REMEDY)
    return contents


def _refuse_other_format(subject: str, found: Any) -> None:
    if found != BUNDLE_FORMAT:
        is_newer = isinstance(found, int) and found > BUNDLE_FORMAT
        which = "the version of Sluice that wrote it, or a newer one" if is_newer else "a bundle of this version"
        remedy = f"Use {which}, or export the snapshot by this version."
        raise FormatError(subject, f"it has format {json.dumps(found)[:20]}", f"{BUNDLE_FORMAT}", remedy)


def _is_sound(contents: BundleContents) -> bool:
    """Return whether each value is of its kind: a digest that fits says nothing of that."""
    names = [contents.snapshot, *contents.objects, *contents.verdicts, contents.card_sha256]
    sizes = [contents.card_num_bytes, *contents.objects.values()]
    verdicts = [verdict for each in contents.verdicts.values() for verdict in each]
    return (
        all(isinstance(name, str) and is_id(name) for name in [*names, contents.proof or contents.snapshot])
        and all(isinstance(size, int) and 0 <= size <= _MAX_NUM_BYTES for size in sizes)
        and all(isinstance(verdict, dict) and verdict.keys() >= set(_VERDICT) for verdict in verdicts)
        and all(isinstance(verdict[name], (int, float)) for verdict in verdicts for name in ("limit", "measured"))
    )
