"""Verdicts of the gates about an object, in a file of their own."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.core.durable import replace
from pipeline.core.errors import DamagedError


class Verdicts:
    """Verdicts under `root`/verdicts, by object id. The latest replace those before."""

    root: Path
    clock: Callable[[], datetime]

    def put_verdicts(self, object_id: str, verdicts: Any) -> None:
        """Store what the gates decided about an object."""
        content = {"when": self.clock().isoformat(), "verdicts": verdicts}
        replace(self.root / "verdicts" / f"{object_id}.json", json.dumps(content, indent=1, sort_keys=True).encode())

    def verdicts(self, object_id: str) -> Any:
        """Return what the gates last decided about an object; None if they never did. Raises DamagedError."""
        path = self.root / "verdicts" / f"{object_id}.json"
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_bytes())
            return {**found, "verdicts": found["verdicts"]}
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedError(
                f"verdicts of object {object_id[:12]}", f"they cannot be read ({error})", "", "Build again to judge it."
            ) from error
