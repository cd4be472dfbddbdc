"""A build: one corpus, its Params and pins, the store that it holds, and the workers that do the work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.build.engine import Engine
from pipeline.build.recipes import CorpusParams
from pipeline.build.withdrawal import standing
from pipeline.core.progress import Listener, silent
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selector
from pipeline.store.store import Store


@dataclass(frozen=True)
class BuildOrder:
    """What is asked of a build. `corpus` names its refs; `who` is shown to those who wait for the corpus."""

    corpus: str
    params: CorpusParams
    pins: tuple[SourcePin, ...]
    who: str
    num_workers: int = 1
    offline: bool = False
    wait_seconds: float = 3_600.0


@dataclass(frozen=True)
class Build:
    """An order, and the means: the store, held for writing, the workers, and an empty folder for this build alone."""

    order: BuildOrder
    store: Store
    engine: Engine
    scratch: Path
    listen: Listener
    withdrawn: tuple[Selector, ...] = ()

    @property
    def pins(self) -> tuple[SourcePin, ...]:
        """The pins that are collected: those of the order without the sources that are withdrawn whole."""
        gone = {selector.source for selector in self.withdrawn if selector.is_whole_source}
        return tuple(pin for pin in self.order.pins if pin.name not in gone)

    @property
    def corpus(self) -> str:
        return self.order.corpus

    @property
    def params(self) -> CorpusParams:
        return self.order.params


@contextmanager
def open_build(
    order: BuildOrder, store: Store, listen: Listener = silent, on_wait: Callable[[str], None] = lambda holder: None
) -> Iterator[Build]:
    """Hold the corpus and start the workers. A second build of the corpus waits; `on_wait` hears once for whom.

    Raises LockedError when it has waited `order.wait_seconds`.
    """
    with (
        store.writer(order.corpus, order.who, order.wait_seconds, on_wait) as scratch,
        Engine(order.num_workers) as engine,
    ):
        yield Build(order, store, engine, scratch, listen, standing(store))
