"""Verdicts of the gates about the objects of a store: the latest, each with its digest."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.core.durable import replace
from pipeline.core.errors import DamagedError, MissingError
from pipeline.core.params import digest, parse_json
from pipeline.storage.checked_text import refuse_link
from pipeline.storage.storage import Storage

_REMEDY = (
    "Build the same again to judge it, or promote another snapshot: `python -m pipeline gc` removes after a week what nothing "
    "needs."
)


class Verdicts:
    """The latest verdicts about each object, under `root`/verdicts."""

    root: Path
    storage: Storage
    clock: Callable[[], datetime]

    def put_verdicts(self, object_id: str, verdicts: Any) -> None:
        """Store what the gates decided about an object."""
        content = {"when": self.clock().isoformat(), "verdicts": verdicts}
        replace(self._verdicts_path(object_id), _with_digest(object_id, content))
        self.storage.put(f"verdicts/{object_id}.json")

    def verdicts(self, object_id: str) -> Any:
        """Return what the gates last decided about an object; None if they never did. Raises DamagedError."""
        path = self._verdicts_path(object_id)
        self.storage.fetch(f"verdicts/{object_id}.json")
        if not path.exists():
            return None
        refuse_link(path, 2, f"verdicts of object {object_id[:12]}", _REMEDY)
        try:
            found = path.read_bytes()
            content = parse_json(found)
            content.pop("digest")
            is_sound = found == _with_digest(object_id, content)
            content["verdicts"]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise _bad_verdicts(object_id, f"they cannot be read ({error})") from error
        if not is_sound:
            raise _bad_verdicts(object_id, "their digest is not that of their content")
        return content

    def _verdicts_path(self, object_id: str) -> Path:
        return self.root / "verdicts" / f"{object_id}.json"


def missing_verdicts(object_id: str, stage: str) -> MissingError:
    """Return the error of verdicts that are not there, though a ref was moved to the output of a stage that was judged."""
    subject, remedy = f"verdicts of object {object_id[:12]}", f"Build {stage} again to judge it."
    return MissingError(subject, "they are missing", "", remedy)


def _with_digest(object_id: str, content: dict[str, Any]) -> bytes:
    named = content | {"digest": digest([object_id, content])}
    return json.dumps(named, indent=1, sort_keys=True).encode()


def _bad_verdicts(object_id: str, found: str) -> DamagedError:
    return DamagedError(f"verdicts of object {object_id[:12]}", found, "as written", _REMEDY)
