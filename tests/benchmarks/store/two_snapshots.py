"""Store with two snapshots of the made corpus: the first holds what was withdrawn after it, the second is live."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.build.promotion import promote
from pipeline.build.withdrawal import restore, withdraw
from pipeline.store.store import Store
from tests.conftest import build_tiny
from tests.faults.injected_faults import in_child

CORPUS = "tiny"
WITHDRAWN = "lantern/src/**"


@dataclass(frozen=True)
class TwoSnapshots:
    """A store, the snapshot that was live first, and the one that is live."""

    root: Path
    first: str
    second: str

    def rebuilt(self) -> str:
        """Build the corpus, promote the candidate, and return what is live then."""
        build_tiny(self.root)
        return promote(Store(self.root), CORPUS).new


def two_snapshots(root: Path) -> TwoSnapshots:
    """Build and promote both snapshots into an empty folder.

    Each step is a process of its own: promotions make the parts again that another process made, once, and forks of this process
    inherit no threads.
    """
    _in_process(lambda: build_tiny(root))
    _in_process(lambda: promote(Store(root), CORPUS))
    first = Store(root).ref(CORPUS, "live") or ""
    _in_process(lambda: withdraw(Store(root), WITHDRAWN, "its owner asked"))
    _in_process(lambda: build_tiny(root))
    _in_process(lambda: promote(Store(root), CORPUS))
    return TwoSnapshots(root, first, Store(root).ref(CORPUS, "live") or "")


def taken_back(whole: TwoSnapshots) -> TwoSnapshots:
    """Take the withdrawal back, so that one may roll back to the first snapshot."""
    restore(Store(whole.root), WITHDRAWN, "its owner agreed")
    return whole


def _in_process(step: Callable[[], object]) -> None:
    if in_child(step) != 0:
        raise RuntimeError("a step of the store of two snapshots failed; see above")
