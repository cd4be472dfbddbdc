"""Keys of builds: the first stage of which a build has a part that a store does not know, by the identities of the build itself."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.build.audit import request_facts
from pipeline.build.build import Build, BuildRequest
from pipeline.build.build_context import BuildContext, audited
from pipeline.build.engines.engine import Engine
from pipeline.build.engines.part_task import PartResult, PartTask
from pipeline.build.recipes import Recipe, pins_of
from pipeline.build.stage_objects import parts_of
from pipeline.contracts.part import Part
from pipeline.core.declared import load_declared
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store


class MadeByBuild(NamedTuple):
    """Stages that a build makes, those after a part of all sources, which depend on what it finds, and what it audits again."""

    made: tuple[str, ...]
    made_where_changed: tuple[str, ...]
    audited: tuple[str, ...]


def made_by_build(store: Store, corpus: str, recipe: Recipe, scratch: Path) -> MadeByBuild:
    """Return what a build by a recipe makes in a store that has the corpus; it makes nothing, and stops at the first part."""
    request = BuildRequest(corpus, recipe.params, pins_of(recipe), "tests")
    build = Build(request, store, _NoEngine(), scratch, lambda event: None)
    before: str | None = None
    again: list[str] = []
    for stage in STAGES:
        stored = store.ref(corpus, stage.name)
        assert stored is not None
        context = _Recognizing(stage, build, before, {"canaries": ""})
        context.parts = parts_of(store.read(stored))
        try:
            output = load_declared(f"stage {stage.name}", "run", stage.run)(context)
        except _MadePartError as error:
            is_of_all = str(error) in {kind.only for kind in stage.parts}
            first = STAGES.names.index(stage.name)
            end = first + 1 if is_of_all else len(STAGES.names)
            return MadeByBuild(STAGES.names[first:end], STAGES.names[end:], tuple(again))
        try:
            audited(stage, context, output, request_facts(request.pins, recipe.params))
        except _MadePartError:
            again.append(stage.name)
        before = stored
    return MadeByBuild((), (), tuple(again))


class _MadePartError(Exception):
    """A part that is made: the store does not know its key."""


class _Recognizing(BuildContext):
    """A context that knows also what every build makes anew, so that this says nothing."""

    parts: Mapping[str, str]

    def known(self, part: Part) -> str | None:
        return self.parts[part.name] if part.always else super().known(part)


class _NoEngine(Engine):
    """An engine that makes nothing."""

    num_workers = 1

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        for task in tasks:
            raise _MadePartError(task.part.name)
        yield from ()

    def run_in_workers(self, tasks: Sequence[PartTask]) -> Iterator[tuple[PartTask, PartResult]]:
        return self.run(tasks)
