"""Records of a store beside its objects: append-only logs of moves and withdrawals, and verdicts of the gates."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.core.durable import cut_torn_line, make_folder, replace, sync
from pipeline.core.errors import DamagedError
from pipeline.core.params import canonical_json
from pipeline.store.locks import REFS_LOCK, Locks

PROMOTIONS = Path("log") / "promotions.jsonl"
WITHDRAWALS = Path("log") / "withdrawals.jsonl"


class Log(Locks):
    """Logs under `root`/log, one JSON object a line, and the latest verdicts about an object under `root`/verdicts."""

    root: Path
    clock: Callable[[], datetime]

    def history(self, corpus: str) -> list[dict[str, Any]]:
        """Return every move of the refs of a corpus, oldest first, without a line torn by a power cut. Raises DamagedError."""
        return [entry for entry in self.entries(PROMOTIONS, "corpus") if entry["corpus"] == corpus]

    def withdrawals(self) -> list[dict[str, Any]]:
        """Return every withdrawal, and each one taken back (`is_undone`), oldest first. Raises DamagedError."""
        return list(self.entries(WITHDRAWALS, "selector"))

    def log_withdrawal(self, selector: str, reason: str, is_undone: bool = False) -> None:
        """Record that no corpus may hold what `selector` names, or that they may again."""
        with self.lock(REFS_LOCK):
            self.append(WITHDRAWALS, {"selector": selector, "reason": reason, "is_undone": is_undone})

    def entries(self, log: Path, required: str) -> Iterator[dict[str, Any]]:
        """Iterate over the entries of a log. Raises DamagedError for a line without the field `required`."""
        path = self.root / log
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                entry: dict[str, Any] = json.loads(line)
                yield {**entry, required: entry[required]}
            except (ValueError, TypeError, KeyError) as error:
                raise DamagedError(
                    f"line {number} of {log}",
                    "it is not an entry",
                    f"JSON with a {required}",
                    "Remove the line by hand.",
                ) from error

    def append(self, log: Path, entry: dict[str, Any]) -> None:
        """Append an entry with its time, and sync it. The caller holds the lock of the refs."""
        path = self.root / log
        make_folder(path.parent)
        with path.open("a+b") as file:
            cut_torn_line(file)
            file.write(canonical_json(entry | {"when": self.clock().isoformat()}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)

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
