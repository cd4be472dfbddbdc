"""Build: one corpus, its Params and pins, the store that it has locked for writing, and its workers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.build.engines.engine import Engine
from pipeline.build.engines.engine_kinds import open_engine
from pipeline.build.engines.stage_work import NO_WORK, Work
from pipeline.build.recipes import CorpusParams
from pipeline.build.withdrawal import active_withdrawals
from pipeline.pins.decisions import Decision
from pipeline.pins.pins import SourcePin
from pipeline.pins.selection import Selector
from pipeline.store.store import Store


@dataclass(frozen=True)
class BuildRequest:
    """The arguments of a build. `corpus` names its refs; `who` is shown to other builds that wait for the corpus."""

    corpus: str
    params: CorpusParams
    pins: tuple[SourcePin, ...]
    who: str
    num_workers: int = 1
    engine: str = "local"
    """A name in ENGINES."""
    address: str = ""
    """Of the cluster that makes the parts; empty: this machine, or one that is started on it."""
    offline: bool = False
    wait_seconds: float = 3_600.0
    decisions: tuple[Decision, ...] = ()
    recipe_limits: Mapping[str, float] = field(default_factory=dict)
    """Limits of gates that the recipe has otherwise than `params`, by name: the history says them beside the proof."""


def refuse_unusable(params: CorpusParams, pins: Iterable[SourcePin]) -> None:
    """Raise an error for a rule of what is held out, evaluation items or a vocabulary with which no build could go on."""
    from pipeline.stages.normalize.contamination.evaluation_items import digest_of_items
    from pipeline.stages.tokenize.vocabulary import load_vocabulary  # other commands do not wait for their libraries

    params.held_out.refuse_idle_sources(pin.name for pin in pins)
    digest_of_items(params.normalize.decontamination.items_folder)
    load_vocabulary(params.tokenize.vocabulary)


BEGINS = "begins"
"""`part` of the event before the first part is finished."""


@dataclass(frozen=True)
class ProgressEvent:
    """`num_done` of `num_parts` parts of a stage are stored; `num_bytes` of text were read for them.

    `part` is the one that was just finished, `unchanged` whether it was recognized and not made again; BEGINS before the first.
    """

    stage: str
    num_done: int
    num_parts: int
    num_bytes: int
    part: str
    unchanged: bool
    work: Work = NO_WORK
    """The work of the stage that is done, and that is left."""


Listener = Callable[[ProgressEvent], None]


@dataclass(frozen=True)
class Build:
    """A request and its resources: the store, locked for writing, the workers, and an empty folder for this build alone."""

    request: BuildRequest
    store: Store
    engine: Engine
    scratch: Path
    listen: Listener
    withdrawn: tuple[Selector, ...] = ()

    @property
    def pins(self) -> tuple[SourcePin, ...]:
        """The pins to collect: those of the request without the sources that are withdrawn whole."""
        gone = {selector.source for selector in self.withdrawn if selector.is_whole_source}
        return tuple(pin for pin in self.request.pins if pin.name not in gone)

    @property
    def corpus(self) -> str:
        return self.request.corpus

    @property
    def params(self) -> CorpusParams:
        return self.request.params


@contextmanager
def open_build(
    request: BuildRequest,
    store: Store,
    listen: Listener = lambda event: None,
    on_wait: Callable[[str], None] = lambda holder: None,
) -> Iterator[Build]:
    """Lock the corpus and start the workers. A second build of the corpus waits; `on_wait` is called once with the holder.

    Raises LockedError after `request.wait_seconds`.
    """
    with (
        store.writer(request.corpus, request.who, request.wait_seconds, on_wait) as scratch,
        open_engine(request.engine, request.num_workers, request.address, scratch) as engine,
    ):
        yield Build(request, store, engine, scratch, listen, active_withdrawals(store))
